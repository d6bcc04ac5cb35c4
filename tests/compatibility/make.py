"""Writes what the package makes and answers: files, answers, first weights, losses of trainings.

It was run once, at 176042c: `python tests/compatibility/make.py OUT`.
"""

import argparse
import json
import lzma
import os
import pathlib
import tarfile
import tempfile

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import compatibility_cases as cases
import compatibility_training as training
import keras
import numpy as np
import sentencepiece
import tensorflow as tf

import keras_tupe
from keras_tupe import export, models, positions, trainer

AT_POSITIONS = ("normalize_first", "albert", "window-shaw", "separate-tupe_r", "memory-xlnet")
ENOUGH = 8  # different tokens of what is written
FILES_OF_BACKBONES = ("tupe_r", "shaw", "qkr_3", "rope", "xlnet", "deberta", "fire")


def new(kind, arguments, seed=0):
    """Returns a scrambled backbone."""
    return cases.scramble(kind(**{**cases.SIZES, **arguments}), seed)


def encoder(position, seed=0, **arguments):
    """Returns a scrambled `TupeBackbone`."""
    return new(keras_tupe.TupeBackbone, {"position": position, **arguments}, seed)


def sentences():
    """Returns a tokenizer of SentencePiece."""
    with tempfile.TemporaryDirectory() as folder:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(cases.TEXTS + cases.OTHER_TEXTS),
            model_prefix=f"{folder}/model",
            model_type="bpe",
            vocab_size=50,
            **dict(zip(("bos_id", "pad_id", "eos_id", "unk_id"), range(4), strict=True)),
            control_symbols="<mask>",
            normalization_rule_name="nmt_nfkc_cf",
            minloglevel=2,
        )
        content = pathlib.Path(f"{folder}/model.model").read_bytes()
    return keras_tupe.TupeTokenizer(sentencepiece=content)


def tasks():
    """Returns a scrambled model of every class, most with a preprocessor, by name."""
    words = keras_tupe.TupeTokenizer(cases.PIECES)
    rows = {"tokenizer": words, "sequence_length": cases.LENGTH}
    of_pieces = sentences()
    large = encoder("absolute", vocabulary_size=of_pieces.vocabulary_size())
    detector = models.TupeReplacedTokenDetector
    generator = {"hidden_dim": 4, "num_heads": 1, "embedding_dim": 8}
    made = {
        "masked_lm": keras_tupe.TupeMaskedLM(
            encoder("tupe_r"), models.TupeMaskedLMPreprocessor(**rows)
        ),
        "masked_lm-approximate": keras_tupe.TupeMaskedLM(
            encoder("qkr_4", embedding_dim=4), head_activation="gelu_approximate"
        ),
        "text_classifier": keras_tupe.TupeTextClassifier(
            encoder("bert_r"), 3, models.TupeTextClassifierPreprocessor(**rows)
        ),
        "text_classifier-softmax": keras_tupe.TupeTextClassifier(
            encoder("xlnet", num_segments=2),
            2,
            models.TupeTextClassifierPreprocessor(**rows, segments=True, truncate="waterfall"),
            activation="softmax",
            dropout=0.3,
        ),
        "span_extractor": keras_tupe.TupeSpanExtractor(
            encoder("t5"), models.TupeTextClassifierPreprocessor(**rows)
        ),
        "causal_lm": keras_tupe.TupeCausalLM(
            encoder("rope", **cases.CAUSAL), models.TupeCausalLMPreprocessor(**rows)
        ),
        "text_embedder": keras_tupe.TupeTextEmbedder(
            large, models.TupeTextClassifierPreprocessor(of_pieces, cases.LENGTH)
        ),
        "text_embedder-max": keras_tupe.TupeTextEmbedder(
            encoder("kerple"), pooling="max", normalize=False
        ),
        "text_embedder-cls": keras_tupe.TupeTextEmbedder(encoder("tupe_a"), pooling="cls"),
        "masked_pair_lm": models.TupeMaskedPairLM(
            encoder("absolute", num_segments=2), models.TupeMaskedPairLMPreprocessor(**rows)
        ),
        "token_discriminator": models.TupeTokenDiscriminator(
            encoder("deberta"), models.TupeTextClassifierPreprocessor(**rows)
        ),
        "detector": detector(encoder("shaw", **generator), encoder("shaw")),
        "detector-disentangled": detector(
            encoder("tupe_r", **generator),
            encoder("tupe_r"),
            embedding_sharing="gradient_disentangled",
            discriminator_weight=10.0,
        ),
        "seq2seq_lm": models.TupeSeq2SeqLM(
            new(models.TupeSeq2SeqBackbone, {"position": "tupe_r"}),
            models.TupeSeq2SeqLMPreprocessor(words, cases.LENGTH, cases.LENGTH - 4),
        ),
    }
    return {name: cases.scramble(model, 1) for name, model in made.items()}


def checked_writing(model, least=1e-3):
    """Returns what a model writes by weights with which no choice is close and many differ."""
    best = 0, None, None
    for seed in range(1, 40):
        cases.scramble(model, seed)
        found = cases.written(model)
        given = found
        if "decoder_token_ids" in (x.name for x in model.inputs):
            given = {**cases.inputs_of(model), **{f"decoder_{x}": y for x, y in found.items()}}
        logits = np.sort(np.asarray(model(given)), axis=-1)
        margins = np.where(found["padding_mask"], logits[..., -1] - logits[..., -2], np.inf)
        different = len(np.unique(found["token_ids"]))
        if margins.min() > least and different > best[0]:
            best = different, seed, found
        if best[0] >= ENOUGH:
            break
    if best[1] is None:
        raise RuntimeError("no weights with a clear choice")
    print(model.backbone.position, best[:2])
    return best[1:]


def make_backbones(out):
    """Writes presets and files of backbones; returns their answers."""
    found = {}
    kinds = dict.fromkeys(cases.backbones(), keras_tupe.TupeBackbone)
    arguments = cases.backbones()
    for name, given in cases.pairs().items():
        kinds[name], arguments[name] = models.TupeSeq2SeqBackbone, given
    for name, given in arguments.items():
        model = new(kinds[name], {**given, "name": "model"})
        model.save_to_preset(str(out / "backbones" / name))
        found[f"backbones/{name}"] = cases.answers(model)
        if name in positions.METHODS or name in AT_POSITIONS:
            found[f"backbones/{name}"] |= cases.answers_at_positions(model)
        if name in FILES_OF_BACKBONES:
            (out / "keras").mkdir(exist_ok=True)
            model.save(out / "keras" / f"{name}.keras")
            found[f"keras/{name}"] = cases.answers(model)
    return found


def make_patterns():
    """Returns the answers of all plain backbones with other patterns; refused ones have none."""
    found = {}
    for name in sorted(positions.METHODS):
        model = encoder(name, **cases.TWO)
        for pattern, arguments in cases.PATTERNS.items():
            try:
                other = cases.with_pattern(model, arguments)
            except ValueError:
                found[f"patterns/{name}/{pattern}"] = {"refused": np.array(True)}
            else:
                found[f"patterns/{name}/{pattern}"] = cases.answers(other)
    return found


def make_writing():
    """Returns what all methods write, with the seed of the weights."""
    found = {}
    for name, make in cases.writers().items():
        seed, rows = checked_writing(make())
        found[f"written/{name}"] = {"seed": np.array(seed), **rows}
    return found


def make_tasks(out):
    """Writes presets of the tasks with a preprocessor, and files of all; returns their answers."""
    found = {}
    for name, model in tasks().items():
        model.save(out / "keras" / f"{name}.keras")
        found[f"keras/{name}"] = cases.task_answers(model)
        if model.preprocessor is not None or name == "detector":
            model.save_to_preset(str(out / "tasks" / name))
            found[f"tasks/{name}"] = found[f"keras/{name}"]
    return found


def make_exports(out):
    """Writes SavedModels; returns their answers."""
    made = tasks()
    words = made["masked_lm"].preprocessor.tokenizer
    masked = keras_tupe.TupeMaskedLM(encoder("tupe_r"))
    export.export_encoder(
        cases.scramble(masked, 2), out / "exports" / "encoder", dynamic_length=True
    )
    rows = cases.rows()
    hub = {"input_word_ids": rows["token_ids"], "input_mask": rows["padding_mask"]}
    saved = models.SavedEncoder(str(out / "exports" / "encoder"), mlm=True)
    found = {"exports/encoder": saved({**hub, "masked_lm_positions": rows["mask_positions"]})}
    other = encoder("qkr_4")
    export.export_encoder(other, out / "exports" / "encoder-qkr_4")
    saved = models.SavedEncoder(str(out / "exports" / "encoder-qkr_4"))
    found["exports/encoder-qkr_4"] = saved(hub)
    made = {
        "text_model": keras_tupe.TupeTextClassifier(encoder("t5"), 3),
        "generator": keras_tupe.TupeCausalLM(encoder("alibi", **cases.CAUSAL)),
        "seq2seq": models.TupeSeq2SeqLM(new(models.TupeSeq2SeqBackbone, {"position": "tupe_r"})),
    }
    made = {name: cases.scramble(model, 3) for name, model in made.items()}
    export.export_text_model(made["text_model"], words, out / "exports" / "text_model")
    export.export_generator(made["generator"], words, out / "exports" / "generator", top_k=5)
    rows = models.TupeSeq2SeqLMPreprocessor(words, cases.LENGTH, cases.LENGTH - 4)
    export.export_seq2seq(made["seq2seq"], rows, out / "exports" / "seq2seq", top_k=5)
    for name, signatures in cases.SIGNATURES.items():
        loaded = tf.saved_model.load(str(out / "exports" / name))
        found[f"exports/{name}"] = cases.served(loaded, signatures)
    return found


def make_continued(out):
    """Writes a trainer after 10 steps, as a file and as a checkpoint; returns later losses."""
    made = training.make_trainer(training.CONTINUED)
    before = training.losses_of(made, last=10)
    made.save(out / "keras" / "trainer.keras")
    checkpoints = trainer.Checkpoints(out / "checkpoints")
    checkpoints.save(10, trainer.read_state(made), {"note": "of the test"})
    return before + training.losses_of(made, first=10)


def make_first_weights():
    """Returns what is known of the first weights of models, by name."""
    found = {}
    for name, make in cases.new_models().items():
        keras.utils.set_random_seed(1)
        found[name] = cases.first_weights(make())
    return found


def make_losses():
    """Returns the losses of all trainings by name, `None` for those that are refused."""
    found = {}
    for name in training.names(sorted(positions.METHODS)):
        try:
            made = training.make_trainer(name)
        except ValueError:
            found[name] = None
            continue
        found[name] = training.losses_of(made)
        keras.backend.clear_session()
    return found


def write(data, answers, weights, losses, out):
    """Writes everything into the folder `data`."""
    data.mkdir(parents=True)
    arrays = {f"{x}/{y}": np.asarray(z) for x, many in answers.items() for y, z in many.items()}
    for name, value in arrays.items():
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise ValueError(f"{name} has what is no number")
    np.savez_compressed(data / "answers.npz", **arrays)
    for name, found in {"first_weights.json.xz": weights, "losses.json": losses}.items():
        text = ",\n".join(f"{json.dumps(x)}: {json.dumps(y)}" for x, y in found.items())
        opened = lzma.open if name.endswith("xz") else open
        with opened(data / name, "wt", encoding="utf-8") as file:
            file.write(f"{{\n{text}\n}}\n")
    with tarfile.open(data / "files.tar.xz", "w:xz", preset=9) as tar:
        for path in sorted(out.rglob("*")):
            if path.is_file():
                tar.add(path, path.relative_to(out), filter=_plain)


def _plain(info):
    info.mtime = info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def main():
    """Makes everything, in a folder that is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path, metavar="OUT", help="folder to make")
    data = parser.parse_args().out
    if data.exists():
        raise SystemExit(f"{data} exists. What lies there is never made anew.")
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        weights = make_first_weights()
        answers = make_backbones(out) | make_patterns() | make_writing() | make_tasks(out)
        answers |= make_exports(out)
        continued = make_continued(out)
        losses = make_losses()
        if not np.allclose(continued, losses[training.CONTINUED], rtol=1e-7):
            raise ValueError("a training that goes on from where it was has other losses")
        write(data, answers, weights, losses, out)


if __name__ == "__main__":
    main()
