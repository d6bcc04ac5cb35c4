"""What a user does wrong with the models is answered by a sentence: what, expected, received."""

import dataclasses
import inspect
import re

import keras
import numpy as np
import pytest
from position_cases import inputs, random_ids

from keras_tupe import positions
from keras_tupe.models import (
    TupeBackbone,
    TupeMaskedLM,
    TupeMaskedLMPreprocessor,
    TupeTextClassifier,
    TupeTextClassifierPreprocessor,
    TupeTokenizer,
)
from keras_tupe.trunk.config import TrunkConfig

SIZES = {"vocabulary_size": 23, "num_layers": 1, "num_heads": 2, "hidden_dim": 10}
SIZES["intermediate_dim"] = 13
FIELDS = {field.name: field for field in dataclasses.fields(TrunkConfig)}


def config(**kwargs):
    return TrunkConfig(**{**SIZES, "max_sequence_length": 17, "dropout": 0.0, **kwargs})


def backbone(**kwargs):
    return TupeBackbone(**{**SIZES, "max_sequence_length": 17, "dropout": 0.0, **kwargs})


def check_helpful(error, *parts):
    """Checks the parts of a message, and that it is sentences with the value at the end."""
    # Keras puts a line before a message from `call`, and the arguments behind it.
    message = re.sub(r"\x1b\[\d*m", "", str(error.value))
    for part in (*parts, "Received: "):
        assert part in message, message
    sentence = message.split("Received: ")[0]
    assert sentence.rstrip().endswith((".", "?", ")")), message
    assert "<keras" not in message, "objects are printed in Python notation"


# Arguments


def test_the_written_signature_of_the_encoder_is_that_of_its_configuration():
    parameters = dict(inspect.signature(TupeBackbone).parameters)
    for name in ("token_embedding", "dtype", "kwargs"):
        del parameters[name]
    fields = {name: field for name, field in FIELDS.items() if name != "scale_embeddings"}
    assert list(parameters) == list(fields)
    for name, field in fields.items():
        missing = field.default is dataclasses.MISSING
        assert parameters[name].default == (inspect.Parameter.empty if missing else field.default)
        assert f"        {name}: " in TupeBackbone.__doc__


FLAGS = [name for name, field in FIELDS.items() if field.type in (bool, "bool")]
NONE, NEGATIVE = [0, 1.5, "2"], [-0.1, float("nan"), "1", None]
WRONG_VALUES = {
    "must be a positive integer": ([*SIZES, "max_sequence_length"], [0, -3, 2.0, "2", None, True]),
    "must be a positive integer or None": (["embedding_dim", "num_groups", "segment_length"], NONE),
    "must be an integer >= 0, where 0 means": (["num_segments", "memory_length"], [-1, 1.5, None]),
    "must be a number in [0, 1)": (["dropout"], [1.0, 1, -0.1, 2, "0.1", None]),
    "must be a number >= 0": (["initializer_range", "layer_norm_epsilon"], NEGATIVE),
    "must be True or False": (FLAGS, [1, 0, "yes", None]),
    "Unknown position method": (["position"], [None, 3, ["tupe_r"], "", "something else entirely"]),
    "dictionary": (["position_options", "pattern_options"], ["released", 3, ["variant"]]),
}


def test_impossible_values_of_every_argument():
    seen = set()
    for words, (names, values) in WRONG_VALUES.items():
        for name in names:
            seen.add(name)
            for value in values:
                with pytest.raises((ValueError, TypeError)) as error:
                    config(**{name: value})
                check_helpful(error, words, f"{name}={value!r}")
    # elsewhere: test_tupe_backbone, test_changes and the tests of patterns
    assert set(FIELDS) - seen == {"activation", "kept_heads", "attention_pattern"}
    with pytest.raises(ValueError, match="`dropout` must be"):
        backbone(dropout=2)
    with pytest.raises(ValueError, match=r"\[0, 1\)"):
        TupeTextClassifier(backbone(), 2, dropout=1.0)


GLOBAL = {"attention_pattern": "sliding_window", "pattern_options": {"num_global": 18}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_heads": 3}, "divisible by `num_heads`.*hidden_dim=10, num_heads=3"),
        ({"num_layers": 4, "num_groups": 3}, "must divide.*num_groups=3, num_layers=4"),
        ({"vocabulary_size": 10**15}, "more than this machine.*GiB.*vocabulary_size=10"),
        ({"position_options": {"num_buckets": 10**15}}, "more than this machine"),
        (GLOBAL, "more global tokens.*max_sequence_length=17"),
        ({"memory_lenght": 3}, "memory_lenght"),
    ],
)
def test_arguments_that_do_not_fit_each_other(changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        config(**changes)


def test_an_unknown_position_names_the_nearest_one_and_all():
    for name, nearest in (("tupe-r", "tupe_r"), ("absolut", "absolute"), ("TUPE_A", "")):
        for call in (positions.get, lambda value: config(position=value)):
            with pytest.raises(ValueError, match="Unknown position method") as error:
                call(name)
            check_helpful(error, str(sorted(positions.METHODS)), f"position={name!r}")
            check_helpful(error, f"Did you mean {nearest!r}?" if nearest else "")


@pytest.mark.parametrize(
    ("position", "options", "part"),
    [
        ("t5", {"bucket": 8}, "['cls', 'max_distance', 'num_buckets']"),
        ("none", {"cls": "tied"}, "it has none"),
        ("tupe_r", {"variant": "relased"}, "['paper', 'released']"),
        ("tupe_r", {"cls": "free"}, "['tied', 'untied']"),
        ("tupe_r", {"num_buckets": 7}, "even integer >= 4"),
        ("tupe_r", {"num_buckets": 32.0}, "even integer >= 4"),
        ("tupe_r", {"max_distance": 8}, "an integer above 8"),
        ("tupe_r", {"variant": "released", "cls": "free"}, "['tied', 'untied']"),
        ("shaw", {"k": 0}, "from 1 to max_sequence_length - 1 = 16"),
        ("qkr_3", {"k": 17}, "from 1 to max_sequence_length - 1 = 16"),
        ("qkr_1", {"k": 2.0}, "or None for none"),
        ("deberta", {"variant": "theirs"}, "['paper', 'released']"),
        ("deberta", {"k": 18}, "an integer from 1 to 17"),
        ("shaw", {"share_heads": "yes"}, "True or False"),
        ("qkr_1", {"initializer": "one"}, "['normal', 'ones', 'zeros']"),
        ("rope", {"cls": True}, "['tied', 'untied']"),
        ("xlnet", {"use_biases": "no"}, "True or False"),
        ("diet_abs", {"rank": 0}, "a positive integer"),
        ("t5_low_rank", {"max_distance": 0}, "a positive integer"),
        ("rope", {"every": 3}, "set together"),
        ("rope", {"local_theta": 9.0}, "set together"),
        ("rope", {"local_theta": 9.0, "every": 1}, "an integer >= 2"),
        ("rope", {"every": 2, "local_theta": 1}, "a number above 1"),
        ("rope", {"factor": 4}, "needs scaling, 'linear', 'ntk' or 'yarn'"),
        ("rope", {"factor": 4, "scaling": "yarn"}, "needs `original_length`"),
        ("rope", {"scaling": "linear"}, "needs `factor`"),
        ("rope", {"partial": "half"}, "above 0 and at most 1"),
        ("rope", {"thet": 3}, "no option 'thet'. Did you mean 'theta'?"),
        ("alibi", {"learned": "yes"}, "True or False"),
        ("alibi", {"sides": True}, "an integer from 1 to 2"),
        ("kerple", {"kernel": "exp"}, "'log', 'power'"),
        ("fire", {"threshold": -1}, "a number above 0"),
        ("sandwich", {"width": 0}, "even integer >= 2"),
        ("pope", {"theta": 0.5}, "a number above 1"),
        ("data_dependent_alibi", {"cls": "free"}, "'untied'"),
    ],
)
def test_impossible_values_of_options(position, options, part):
    with pytest.raises(ValueError, match="Received") as error:
        backbone(position=position, position_options=options)
    check_helpful(error, part, repr([*options.values()][-1]))


def test_a_preprocessor_without_start_token_refuses_an_untied_cls():
    tokenizer = TupeTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
    free, tied = (backbone(position="t5", position_options={"cls": x}) for x in ("untied", "tied"))
    for kind, task in (
        (TupeTextClassifierPreprocessor, lambda b, p: TupeTextClassifier(b, 2, p)),
        (TupeMaskedLMPreprocessor, TupeMaskedLM),
    ):
        with_start, without = (
            kind(tokenizer, sequence_length=8, add_start_token=start) for start in (True, False)
        )
        assert without.get_config()["add_start_token"] is False
        for made in (task(free, with_start), task(tied, with_start), task(tied, without)):
            assert made.preprocessor is not None
        with pytest.raises(ValueError, match="must be \\[CLS\\]") as error:
            task(free, without)
        check_helpful(error, "'t5'", "add_start_token=True", "add_start_token=False")


def test_an_impossible_number_of_classes():
    for value in (0, -1, 2.5, "3", None):
        with pytest.raises(ValueError, match="`num_classes` must be a positive integer") as error:
            TupeTextClassifier(backbone(), num_classes=value)
        check_helpful(error, f"num_classes={value!r}")


# Inputs: eager calls, symbolic calls, and the paths of `predict` and `fit`


def model_and_inputs(kind):
    """Returns a fresh model with good inputs for it."""
    given = inputs(random_ids(4, 7))
    if kind == "backbone":
        return backbone(), given
    if kind == "classifier":
        return TupeTextClassifier(backbone(), num_classes=2), given
    where = np.tile(np.array([[1, 3]], "int32"), (4, 1))
    return TupeMaskedLM(backbone()), {**given, "mask_positions": where}


KINDS = pytest.mark.parametrize("kind", ["backbone", "classifier", "masked_lm"])
_FLAT = {"token_ids": np.ones(7, int), "padding_mask": np.ones(7, int)}
WRONG = {
    "float ids": ({"token_ids": np.ones((4, 7))}, TypeError, "`token_ids` must hold integers"),
    "boolean ids": ({"token_ids": np.ones((4, 7), bool)}, TypeError, "must hold integers"),
    "float mask": ({"padding_mask": np.ones((4, 7))}, TypeError, "integers or booleans"),
    "shorter mask": ({"padding_mask": np.ones((4, 6), int)}, ValueError, "(4, 6)"),
    "mask of one column": ({"padding_mask": np.ones((4, 1), int)}, ValueError, "(4, 1)"),
    "mask of another batch": ({"padding_mask": np.ones((5, 7), int)}, ValueError, "(5, 7)"),
    "flat ids": (_FLAT, ValueError, "(batch, length)"),
}


@KINDS
def test_wrong_inputs_are_refused_in_eager_calls(kind):
    model, given = model_and_inputs(kind)
    for wrong, error_class, part in WRONG.values():
        with pytest.raises(error_class, match="Received") as error:
            model({**given, **wrong})
        check_helpful(error, part)
    for missing in given:
        with pytest.raises(ValueError, match=missing):
            model({name: value for name, value in given.items() if name != missing})
    for wrong in (list(given.values()), tuple(given.values())):
        with pytest.raises(ValueError, match="dictionary with the inputs") as error:
            model(wrong)
        check_helpful(error, "'padding_mask'", "'token_ids'")
    with pytest.raises(ValueError, match="padding_mask"):
        model(given["token_ids"])
    mask = keras.Input((7,), dtype="int32")
    for dtype in ("float32", "bool") if kind == "backbone" else ():
        with pytest.raises(TypeError, match="integers"):
            model({"token_ids": keras.Input((7,), dtype=dtype), "padding_mask": mask})
    for bad in (23, -1):
        given["token_ids"][2, 3] = bad
        with pytest.raises(ValueError, match="vocabulary_size=23") as error:
            model(given)
        check_helpful(error, f"token id={bad}")


def test_wrong_inputs_are_refused_by_compiled_paths(tensorflow):
    model, given = model_and_inputs("classifier")
    target = np.array([0, 1, 1, 0])
    long = (inputs(random_ids(4, 18)), ValueError, "max_sequence_length=17 tokens")
    names = ("float ids", "float mask", "shorter mask", "mask of one column")
    for wrong, error_class, part in (*map(WRONG.get, names), long):
        wrong = {**given, **wrong}
        for call in (
            lambda wrong=wrong: model.predict_on_batch(wrong),
            lambda wrong=wrong: model.train_on_batch(wrong, target),
            lambda wrong=wrong: model.fit(wrong, target, verbose=0),
        ):
            with pytest.raises(error_class, match="Received") as error:
                call()
            check_helpful(error, part)


def test_a_mask_of_another_shape_never_passes_even_where_lengths_are_unknown(tensorflow):
    # After a second length TensorFlow traces without lengths, and the check at the door is blind.
    model, given = model_and_inputs("backbone")
    model.predict(given, verbose=0)
    model.predict(inputs(random_ids(4, 9)), verbose=0)
    for mask in (np.ones((4, 1), "int32"), np.ones((4, 6), "int32")):
        with pytest.raises((ValueError, tensorflow.errors.InvalidArgumentError)):
            model.predict({**given, "padding_mask": mask}, verbose=0)
    if not tensorflow.config.list_physical_devices("GPU"):  # where a gather returns zeros
        given["token_ids"][2, 3] = 23
        with pytest.raises(tensorflow.errors.InvalidArgumentError, match="23 is not in"):
            model.predict(given, verbose=0)


def test_segment_ids_are_checked_like_token_ids():
    model = backbone(num_segments=2)
    given = {**inputs(random_ids(4, 7)), "segment_ids": np.zeros((4, 7), "int32")}
    assert model(given)["sequence_output"].shape == (4, 7, 10)
    for wrong, error_class in (
        (np.zeros((4, 7)), TypeError),
        (np.zeros((4, 6), "int32"), ValueError),
        (np.full((4, 7), 2, "int32"), ValueError),
    ):
        with pytest.raises(error_class, match="Received") as error:
            model({**given, "segment_ids": wrong})
        check_helpful(error)


def test_mask_positions_must_be_integers_for_every_row_of_the_batch():
    model, given = model_and_inputs("masked_lm")
    with pytest.raises(TypeError, match="`mask_positions` must hold integers") as error:
        model({**given, "mask_positions": np.ones((4, 2))})
    check_helpful(error, "float")
    for wrong in (np.ones((1, 2), "int32"), np.ones((3, 2), "int32"), np.ones(4, "int32")):
        with pytest.raises(ValueError, match="mask_positions"):
            model({**given, "mask_positions": wrong})
