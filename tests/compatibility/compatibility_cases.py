"""What was made at 176042c, and how an answer is asked for: the script and the test share it."""

import functools
import json

import numpy as np
from keras import ops

import keras_tupe
from keras_tupe import models, positions

ROWS, LENGTH, VOCABULARY = 3, 16, 30
TWO = {"num_layers": 2}  # where one layer would show less; one is made in half of the time
PAD, UNKNOWN, START, END, MASK = range(5)
SIZES = {
    "vocabulary_size": VOCABULARY,
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 16,
    "max_sequence_length": LENGTH,
}
WORDS = (
    "the cat dog sat ran on to mat park sea sells shells by she he old book books read many words"
)
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split(), "##s", ".", "!", "a"]
TEXTS = ["the cat sat on the mat.", "She sells sea shells by the sea!", "old books"]
OTHER_TEXTS = ["many words", "he ran to the park", "a dog read the old book."]

CAUSAL = {"attention_pattern": "causal"}


def window(**options):
    """Returns the arguments of a backbone with a window."""
    return {"attention_pattern": "sliding_window", "pattern_options": {"window": 3, **options}}


# What the weights of the plain backbones of all methods are also asked with.
PATTERNS = {
    "causal": CAUSAL,
    "window": window(num_global=1),
    "causal_window": window(causal=True),
    "memory": {**CAUSAL, "memory_length": 6, "segment_length": 5},
    "segments": {**CAUSAL, "segment_length": 5},
}


def method_options():
    """Returns the options of each method that are made beside its defaults, by name of a case."""
    tables = ("diet_rel", "qkr_1", "qkr_2", "qkr_3", "qkr_4", "shaw")
    of_table = [{"cls": "untied", "k": 3}, {"share_heads": True}, {"share_layers": True}]
    buckets = {"num_buckets": 8, "max_distance": 11}
    options = {
        "alibi": [{"cls": "untied", "learned": True}, {"sides": 2}, {"sides": 2, "learned": True}],
        "bert_r": [{"cls": "untied", **buckets}],
        "data_dependent_alibi": [{"cls": "untied"}],
        "deberta": [{"variant": "released", "k": 3}, {"cls": "untied"}],
        "diet_abs": [{"cls": "untied", "rank": 3}],
        "fire": [{"cls": "untied", "threshold": 5.0, "width": 16}],
        "free_table": [{"cls": "tied"}],
        "kerple": [{"kernel": "power"}, {"cls": "untied"}],
        "pope": [{"cls": "untied", "theta": 50.0}],
        "rope": [
            {"cls": "untied", "theta": 50.0},
            {"partial": 0.5},
            {"scaling": "linear", "factor": 4.0},
            {"scaling": "ntk", "factor": 3.0},
            {"scaling": "yarn", "factor": 2.5, "original_length": 40},
            {"local_theta": 20.0, "every": 2},
        ],
        "sandwich": [{"cls": "untied", "width": 6}],
        "sinusoidal": [{"scale": 0.125}],
        "t5": [{"cls": "untied"}, buckets],
        "t5_low_rank": [{"cls": "tied", "max_distance": 11}],
        "tupe_a": [{"variant": "released"}, {"cls": "tied"}],
        "tupe_r": [{"variant": "released", "cls": "tied"}, buckets],
        "tupe_a_tied_cls": [{"cls": "untied"}],
        "tupe_r_tied_cls": [{"max_distance": 11}],
        "xlnet": [{"use_biases": False}, {"cls": "untied"}],
        "xlnet_no_bias": [{"cls": "untied"}],
        **dict.fromkeys(tables, of_table),
    }
    return {
        "-".join([name, *(f"{key}_{value}" for key, value in one.items())]): {
            "position": name,
            "position_options": one,
            **(TWO if one.keys() & {"share_layers", "every"} else {}),
        }
        for name, many in options.items()
        for one in many
    }


def trunks():
    """Returns the arguments of backbones with other trunks and patterns, by name of a case."""
    before = {"normalize_first": True}
    gpt = {**before, "normalize_embeddings": False, "activation": "gelu_approximate"}
    shared = {"embedding_dim": 4, "num_groups": 1}
    found = {
        "normalize_first": {**TWO, "position": "tupe_r", **before},
        "two_segments": {"position": "absolute", "num_segments": 2, "layer_norm_epsilon": 1e-12},
        "embedding_dim": {**TWO, "position": "bert_r", "embedding_dim": 4},
        "albert": {**TWO, "position": "tupe_r", **shared},
        "one_group": {**TWO, "position": "qkr_3", "num_groups": 1},
        "zero_padded": {"position": "tupe_a", "zero_padded_embeddings": True},
        "gpt": {**TWO, "position": "absolute", **gpt, **CAUSAL},
        "gelu_approximate": {"position": "shaw", "activation": "gelu_approximate"},
        "no_embedding_norm": {"position": "sinusoidal", "normalize_embeddings": False},
        "kept_heads-tupe_r": {**TWO, "position": "tupe_r", "kept_heads": [[0], [1]]},
        "kept_heads-qkr_4": {**TWO, "position": "qkr_4", "kept_heads": [[1], [0, 1]]},
        "kept_heads-alibi": {**TWO, "position": "alibi", "kept_heads": [[1], [1]]},
        "memory-xlnet": {**TWO, "position": "xlnet", **CAUSAL, "memory_length": 6},
        "memory-rope": {
            "position": "rope",
            **window(causal=True),
            "memory_length": 4,
            "segment_length": 6,
        },
        "segments-t5": {"position": "t5", **CAUSAL, "segment_length": 6},
        "window-tupe_r": {"position": "tupe_r", **window()},
        "window-shaw": {"position": "shaw", **window(num_global=1)},
        "window-qkr_4": {"position": "qkr_4", **window(num_global=2)},
        "separate-absolute": {
            "position": "absolute",
            **window(window=2, num_global=2, separate_global=True),
        },
        "separate-tupe_r": {"position": "tupe_r", **window(num_global=1, separate_global=True)},
        "separate-deberta": {"position": "deberta", **window(num_global=1, separate_global=True)},
        "causal_window-rope": {"position": "rope", **window(causal=True)},
        "causal_window-alibi": {"position": "alibi", **window(causal=True, num_global=1)},
        "every-rope": {
            "position": "rope",
            "position_options": {"local_theta": 20.0, "every": 2},
            **window(every=2),
            **TWO,
        },
        "every-xlnet": {**TWO, "position": "xlnet", **window(causal=True, every=2)},
    }
    causal = ("tupe_r", "rope", "qkr_4", "deberta", "fire", "data_dependent_alibi", "xlnet")
    return {**found, **{f"causal-{name}": {"position": name, **CAUSAL} for name in causal}}


def pairs():
    """Returns the arguments of encoders with decoders, by name of a case."""
    original = {"normalize_embeddings": False, "scale_embeddings": True, "num_decoder_layers": 2}
    return {
        "seq2seq-tupe_r": {**TWO, "position": "tupe_r"},
        "seq2seq-sinusoidal": {"position": "sinusoidal", **original},
        "seq2seq-qkr_3": {
            "position": "qkr_3",
            "normalize_first": True,
            "activation": "gelu_approximate",
        },
    }


def backbones():
    """Returns the arguments of all encoders, by the name of a case."""
    methods = {name: {"position": name, **TWO} for name in sorted(positions.METHODS)}
    return {**methods, **method_options(), **trunks()}


def rows(length=LENGTH):
    """Returns every input that a model may have, of three rows with padding, by name."""
    numbers = np.arange(ROWS * length).reshape(ROWS, length)
    ids = numbers * numbers * 7 % 83 % (VOCABULARY - 5) + 5
    mask = (np.arange(length) < np.array([[length], [length * 2 // 3], [5]])).astype("int32")
    ids = np.where(mask, ids, PAD).astype("int32")
    ids[:, 0] = START
    slots = np.array([[1, 4, length - 1], [3, 2, 5], [1, 4, 0]], "int32")
    target = np.roll(ids, 3, axis=1)[:, : length - 4]
    target[:, 0] = START
    target_mask = (np.arange(length - 4) < np.array([[length - 4], [7], [4]])).astype("int32")
    return {
        "token_ids": ids,
        "padding_mask": mask,
        "segment_ids": ((np.arange(length) >= 3) & (mask == 1)).astype("int32"),
        "mask_positions": slots,
        "sampling_noise": ((slots * 7 + 3) % 11 / 11).astype("float32"),
        "encoder_token_ids": ids,
        "encoder_padding_mask": mask,
        "decoder_token_ids": np.where(target_mask, target, PAD).astype("int32"),
        "decoder_padding_mask": target_mask,
    }


def scramble(model, seed=0):
    """Gives every weight multiples of 1/64, drawn by a seed."""
    random = np.random.RandomState(seed)
    for weight in model.weights:
        center = 1.0 if weight.path.endswith("gamma") else 0.0
        values = random.normal(center, 0.4, weight.shape)
        weight.assign(np.round(np.asarray(values) * 64) / 64)
    return model


def inputs_of(model, length=LENGTH):
    """Returns the inputs that a model has."""
    given = rows(length)
    return {tensor.name: given[tensor.name] for tensor in model.inputs}


def answers(model):
    """Returns what a model answers, arrays by name; what stands at padding is left out."""
    given = inputs_of(model)
    return _arrays(model(given), given)


def task_answers(model):
    """Returns what a task answers, and what its tokenizer makes of texts."""
    found = answers(model)
    if model.preprocessor is not None:
        pieces = [list(map(int, row)) for row in model.preprocessor.tokenizer(TEXTS)]
        found["pieces"] = np.array(json.dumps(pieces))
    return found


def answers_at_positions(backbone, length=11):
    """Returns what an encoder answers at some positions of shorter rows."""
    given = inputs_of(backbone, length)
    where = np.array([[0, 4], [2, 1], [4, 3]])
    found = backbone(given, output_positions=where)["sequence_output"]
    return {"at_positions": ops.convert_to_numpy(found)}


def _arrays(found, given):
    found = found if isinstance(found, dict) else {"output": found}
    arrays = {name: ops.convert_to_numpy(value) for name, value in found.items()}
    return {name: _without_padding(name, value, given) for name, value in arrays.items()}


def _without_padding(name, value, given):
    """Returns an array with zeros where its row is padding."""
    prefix = "decoder_" if "decoder_padding_mask" in given else ""
    prefix = "encoder_" if name.startswith("encoder") else prefix
    mask = given[f"{prefix}padding_mask"]
    for axis in (1, 2):
        if value.ndim > axis and value.shape[axis] == mask.shape[1]:
            shape = [1] * value.ndim
            shape[0], shape[axis] = mask.shape
            return value * mask.reshape(shape).astype(value.dtype)
    return value


def with_pattern(backbone, arguments):
    """Returns an encoder with another pattern, of the same weights if it has the same ones."""
    other = keras_tupe.TupeBackbone.from_config({**backbone.get_config(), **arguments})
    if [x.shape for x in backbone.weights] != [x.shape for x in other.weights]:
        return scramble(other)
    for old, new in zip(backbone.weights, other.weights, strict=True):
        new.assign(old)
    return other


# Prompts of 2, 4 and 1 tokens.
PROMPTS = [[2, 7], [2, 9, 21, 12], [2]]


def written(model):
    """Returns what a language model writes after prompts, or to sources, likeliest tokens first."""
    given = inputs_of(model)
    if "decoder_token_ids" in given:
        given["decoder_padding_mask"] = (np.arange(LENGTH - 4) < np.array([[1], [2], [1]])) * 1
        found = model.generate(given, stop_token_ids=[END])
        return {
            name: np.asarray(found[f"decoder_{name}"]) for name in ("token_ids", "padding_mask")
        }
    ids, mask = np.zeros((2, ROWS, LENGTH - 2), "int32")
    for row, prompt in enumerate(PROMPTS):
        ids[row, : len(prompt)], mask[row, : len(prompt)] = prompt, 1
    found = model.generate({"token_ids": ids, "padding_mask": mask}, stop_token_ids=[END])
    return {name: np.asarray(found[name]) for name in ("token_ids", "padding_mask")}


def writers():
    """Returns functions that make the language models which write, by name."""
    kinds = {f"causal/{name}": {"position": name, **CAUSAL} for name in sorted(positions.METHODS)}
    for name in ("rope", "qkr_4"):
        kinds[f"causal_window/{name}"] = {"position": name, **window(causal=True)}

    def writer(task, kind, arguments):
        model = task(kind(**{**SIZES, **arguments}))
        model.compile(sampler="greedy")
        return model

    causal = (keras_tupe.TupeCausalLM, keras_tupe.TupeBackbone)
    of_pairs = (models.TupeSeq2SeqLM, models.TupeSeq2SeqBackbone)
    found = {name: functools.partial(writer, *causal, given) for name, given in kinds.items()}
    return found | {x: functools.partial(writer, *of_pairs, given) for x, given in pairs().items()}


def first_weights(model):
    """Returns of each new weight, in order: path, shape, first value, sum, and a weighted sum."""
    found = []
    for weight in model.weights:
        values = ops.convert_to_numpy(weight).astype("float64").ravel()
        ramp = np.arange(1, values.size + 1) / values.size
        numbers = [values[0], values.sum(), (values * ramp).sum()]
        found.append([weight.path, list(weight.shape), *(round(float(x), 7) for x in numbers)])
    return found


# What is asked of the exports that take texts: signature -> its inputs.
SIGNATURES = {
    "text_model": {
        "serving_default": {"text": TEXTS},
        "embed": {"text": TEXTS},
        "classify_pair": {"text": TEXTS, "text_pair": OTHER_TEXTS},
    },
    "generator": {
        "generate": {"text": ["the cat", "he ran", "she"]},
        "generate_top_k": {"text": ["the cat", "he ran"], "temperature": 0.7, "seed": 3},
        "score": {"text": TEXTS},
    },
    "seq2seq": {
        "serving_default": {"text": TEXTS},
        "generate_top_k": {"text": TEXTS, "max_length": 9, "temperature": 0.7, "seed": 3},
        "score": {"text": TEXTS, "target": OTHER_TEXTS},
    },
}


def served(loaded, signatures):
    """Returns what the signatures of a loaded SavedModel answer, arrays by name."""
    import tensorflow as tf

    found = {}
    for name, given in signatures.items():
        answer = loaded.signatures[name](**{x: tf.constant(y) for x, y in given.items()})
        for key, value in answer.items():
            array = value.numpy()
            found[f"{name}-{key}"] = array.astype("U") if array.dtype == object else array
    return found


def _new_encoder(**arguments):
    return keras_tupe.TupeBackbone(**{**SIZES, **arguments}, name="backbone")


def _new_detector(sharing):
    width = {"hidden_dim": 4, "num_heads": 1, "embedding_dim": 8}
    small = keras_tupe.TupeBackbone(**{**SIZES, **width}, position="shaw", name="small")
    large = _new_encoder(position="shaw")
    detector = models.TupeReplacedTokenDetector
    return detector(small, large, embedding_sharing=sharing, name="model")


# New models of tasks, made after the seed of all random numbers is set.
NEW_TASKS = {
    "masked_lm": lambda: keras_tupe.TupeMaskedLM(_new_encoder(), name="model"),
    "masked_lm-narrow": lambda: keras_tupe.TupeMaskedLM(
        _new_encoder(embedding_dim=4), name="model"
    ),
    "text_classifier": lambda: keras_tupe.TupeTextClassifier(_new_encoder(), 3, name="model"),
    "span_extractor": lambda: keras_tupe.TupeSpanExtractor(_new_encoder(), name="model"),
    "causal_lm": lambda: keras_tupe.TupeCausalLM(_new_encoder(**CAUSAL), name="model"),
    "masked_pair_lm": lambda: models.TupeMaskedPairLM(_new_encoder(num_segments=2), name="model"),
    "token_discriminator": lambda: models.TupeTokenDiscriminator(_new_encoder(), name="model"),
    "detector": lambda: _new_detector("tied"),
    "detector-disentangled": lambda: _new_detector("gradient_disentangled"),
    "seq2seq_lm": lambda: models.TupeSeq2SeqLM(
        models.TupeSeq2SeqBackbone(**SIZES, name="backbone"), name="model"
    ),
}


def new_models():
    """Returns functions that make models with their first weights, by name."""

    def maker(kind, arguments):
        return functools.partial(kind, **{**SIZES, "name": "model", **arguments})

    return {
        **{name: maker(keras_tupe.TupeBackbone, given) for name, given in backbones().items()},
        **{name: maker(models.TupeSeq2SeqBackbone, given) for name, given in pairs().items()},
        **{f"task/{name}": make for name, make in NEW_TASKS.items()},
    }
