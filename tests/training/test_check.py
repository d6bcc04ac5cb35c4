"""`keras-tupe check` finds what is wrong with a method's file, and says it in a sentence."""

import pathlib

import keras
import pytest

from keras_tupe import positions
from training.check.__main__ import main
from training.check.method import suite
from training.check.promise import BROKEN, KEPT

OUTSIDE = pathlib.Path(__file__).parents[2] / "examples" / "linear_slope.py"


def written(folder, *changes):
    """Writes the file of a method with parts of its text replaced."""
    text = OUTSIDE.read_text(encoding="utf-8").replace('package="outside"', f'package="{folder}"')
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    file = folder / OUTSIDE.name
    file.write_text(text, encoding="utf-8")
    return file


def outcome(file, promise):
    """Returns what comes of one check of a file."""
    (check,) = [one for one in suite.checks(positions.load_file(file)) if one.promise == promise]
    return check.outcome()


LEARNED = (
    ("call(self, hidden_states):\n", "call(self, hidden_states):\n        table = self.rates\n"),
    (
        "    def call(",
        "    def build(self, shape):\n"
        '        self.rates = self.add_weight(shape=(self.num_heads,), name="rates")\n\n'
        "    def call(",
    ),
    ("-ops.cast(rates, dtype)[None", "-ops.cast(rates * table, dtype)[None"),
)
READ = (
    "logits = oracle.content_logits(",
    'rates = weights["position_bias/rates"]\n    logits = oracle.content_logits(',
)
TIMES = ("* abs(j - i)", "* abs(j - i) * rates[h]")

SOFTER = (
    "dead_weights=lambda",
    "scores_oracle=lambda logits, weights, dims, options: "
    "oracle.softmax(logits / 2, weights, dims, options),\n    dead_weights=lambda",
)

MUTATIONS = {
    "a wrong oracle of scores": (
        [SOFTER],
        "equation in float64, 1e-12",
        "Scores differ from the oracle's by",
    ),
    "a wrong oracle": (
        [("(h + 1) / dims", "h / dims")],
        "equation in float64, 1e-12",
        "the layers' logits (row, head, query, key) differ from the oracle's by",
    ),
    "an oracle that is right to 1e-9 only": (
        [("* abs(j - i)", "* abs(j - i) * (1 + 1e-9)")],
        "equation in float64, 1e-12",
        "and 1e-12 is allowed",
    ),
    "a wrong weight path": (
        [*LEARNED, READ, TIMES, ('["position_bias/rates"]', '["position_bias/rate"]')],
        "equation in float64, 1e-12",
        "asks for the weight 'position_bias/rate', which no layer of the method has. The nearest "
        "is 'position_bias/rates'",
    ),
    "a wrong weight path with a default": (
        [*LEARNED, READ, TIMES, ('["position_bias/rates"]', '.get("position_bias/rate", (1, 1))')],
        "equation in float64, 1e-12",
        "The nearest is 'position_bias/rates'",
    ),
    "an oracle that calls the layer": (
        [
            (
                "    for h, i, j in np.ndindex",
                "    bias = METHOD.bias(dims, options)(tokens[None])\n"
                "    return logits + keras.ops.convert_to_numpy(bias)[0]\n"
                "    for h, i, j in np.ndindex",
            )
        ],
        "oracle: NumPy alone",
        "an oracle that calls",
    ),
    "an oracle that shares a function with the layer": (
        [
            ("def logits_oracle", "def rate(h, heads):\n    return 2.0 ** (-8 * h / heads)\n\n\n"
             "def logits_oracle"),
            ("2 ** (-8 * (h + 1) / dims.num_heads)", "rate(h + 1, dims.num_heads)"),
            (
                "2.0 ** (-8 * np.arange(1, self.num_heads + 1) / self.num_heads)",
                "rate(np.arange(1, self.num_heads + 1), self.num_heads)",
            ),
        ],
        "oracle: NumPy alone",
        "Received: `rate` of",
    ),
    "a layer that adds less where there is padding": (
        [("abs(place[None, :] - place[:, None])", "abs(place[None, :] - place[:, None]) "
          "* 7 // ops.shape(hidden_states)[1]")],
        "encoder: padding",
        "differs from that without",
    ),
    "a record that forgets that it is relative": (
        [("    shift_invariant=True,\n", "")],
        "encoder: order and shift",
        "its record says shift_invariant=True",
    ),
    "an option that is never varied": (
        [('    other_options=({"slope": 0.3},),\n', "")],
        "the record is complete",
        "none for 'slope'",
    ),
    "weights that never learn": (
        [("dims, options: (KEY_BIAS,)", "dims, options: ()")],
        "weights without a gradient",
        "attention/key/bias[0]",
    ),
    "a config that lacks an argument": (
        [(', "slope": self.slope}', "}")],
        "configs make it again",
        "`get_config` of LinearSlopeBias must return every argument of the constructor. Received: "
        "none for 'slope'",
    ),
    "an oracle that fails": (
        [("logits = oracle.content_logits(", "logits = oracle.no_such_piece(")],
        "oracle: NumPy alone",
        "AttributeError: module 'keras_tupe.positions.oracle' has no attribute",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_found_and_said(name, loaded_files, tmp_path):
    changes, promise, sentence = MUTATIONS[name]
    found = outcome(written(tmp_path, *changes), promise)
    assert found.result == BROKEN
    assert sentence in found.reason
    assert keras.config.floatx() == "float32"


@pytest.mark.parametrize("promise", sorted({promise for _, promise, _ in MUTATIONS.values()}))
def test_the_file_without_a_mutation_keeps_the_promise(promise, loaded_files, tmp_path):
    assert outcome(written(tmp_path), promise).result == KEPT


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "FILE must be given"),
        (["nowhere.py"], "FILE must be an existing Python file. Received: 'nowhere.py'"),
        ([__file__], "FILE must set METHOD to a PositionMethod, or TASK to the class of a task."),
        (["masked-lm"], "the nearest is 'masked_lm'"),
        (["tupe-r"], "the nearest is 'tupe_r'"),
        (["tupe_r", "--metod", "x"], "the nearest option is"),
    ],
)
def test_mistakes_on_the_command_line_are_sentences(words, sentence, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert sentence in capsys.readouterr().err


def test_the_command_prints_a_table_and_ends_with_its_verdict(loaded_files, tmp_path, capsys):
    right = str(written(tmp_path))
    main([right, "--only", "oracle"])
    printed = capsys.readouterr().out
    assert "| promise " in printed
    assert "linear_slope keeps 2 of 2 promises" in printed
    with pytest.raises(SystemExit, match=r"Expected a part of one of \[(.|\n)*Received: 'no such'"):
        main([right, "--only", "no such"])
    wrong = str(written(tmp_path, ("(h + 1) / dims", "h / dims")))
    with pytest.raises(SystemExit) as caught:
        main([wrong, "--only", "1e-12"])
    assert caught.value.code == 1
    assert "equation in float64, 1e-12: In float64 with" in capsys.readouterr().out


@pytest.mark.slow
def test_a_right_file_keeps_every_promise(loaded_files, tmp_path, capsys):
    main([str(written(tmp_path))])
    assert "BROKEN" not in capsys.readouterr().out
