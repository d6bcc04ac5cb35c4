"""What stops training on pairs before it begins: files, texts, settings, presets."""

import commands
import pytest
import seq2seq_cases as cases

from keras_tupe import TupeBackbone, TupeMaskedLM, TupeMaskedLMPreprocessor
from training.presets.load import load_preset


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A preset and a good file."""
    folder = tmp_path_factory.mktemp("seq2seq")
    cases.save_preset(folder / "preset")
    cases.write_pairs(folder / "good.tsv", 4)
    return folder


def refused(folder, tmp_path, content, **options):
    """Trains in vain on a file of these bytes; returns the sentences."""
    bad = tmp_path / "bad.tsv"
    bad.write_bytes(content)
    files = {"train": bad, "valid": folder / "good.tsv"}
    return cases.failure(folder / "preset", out=tmp_path / "out", **files, **options)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"1\t1\n2 3\n", "line 2: a line must have two columns, source and target"),
        (b"1\t1\n2\t3\t4\n", "Received: 3 columns, '2\\t3\\t4'"),
        (b"1\t1\n\n2\t2\n", "line 2: a line must have two columns"),
        (b"\t1\n", "line 1: the source must not be empty"),
        (b"1\t1\n1\t  \r\n", "line 2: the target must not be empty"),
        (b"1\t1\n\xff\t1\n", "line 2: the text must be UTF-8"),
        (b"", "which is empty"),
        (b"1\t1\n1\t\xe2\x80\x8b\n", "line 2: the target must have a word that the vocabulary can"),
    ],
)
def test_lines_that_are_no_pairs_are_told_with_file_and_line(folder, tmp_path, content, sentence):
    message = refused(folder, tmp_path, content)
    assert sentence in message
    assert "--train: " in message
    assert "bad.tsv" in message


def test_the_first_mistakes_of_every_file_are_told_at_once(folder, tmp_path):
    bad = tmp_path / "both.tsv"
    bad.write_text("1\n" * 9)
    files = {"train": bad, "valid": bad, "out": tmp_path / "out"}
    told = cases.failure(folder / "preset", **files).splitlines()
    assert len(told) == 12
    assert told[5] == f"finetune_seq2seq: --train: {bad}: 4 more such lines"
    assert told[6].startswith(f"finetune_seq2seq: --valid: {bad}, line 1: ")


def test_texts_that_are_too_long_are_told_with_their_tokens(folder, tmp_path):
    row = " ".join("1" * 11)  # one more than a source of 12 tokens has room for
    message = refused(folder, tmp_path, f"1\t1\n{row}\t1\n".encode())
    assert "line 2: the source must have at most 12 tokens, special ones included" in message
    assert message.endswith("give a larger --max-source-length, or --cut-long. Received: 13 tokens")
    message = refused(folder, tmp_path, f"1\t{row} 1\n".encode())
    assert "line 1: the target must have at most 12 tokens" in message
    assert message.endswith("Received: 13 tokens")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"num_beams": 0}, "--num-beams must be an integer >= 1. Received: 0"),
        ({"length_penalty": -1}, "--length-penalty must be a number >= 0. Received: -1.0"),
        ({"label_smoothing": 1}, "--label-smoothing must be from 0 to below 1. Received: 1.0"),
        ({"schedule": "inverse"}, "the nearest is 'inverse_sqrt'. Received: 'inverse'"),
        ({"epochs": 2}, "--steps and --epochs both say how long to train"),
        ({"warmup_steps": 12}, "--warmup-steps must be below the number of steps"),
        ({"batch_size": 16, "micro_batches": 3}, "must be divisible by --micro-batches"),
        ({"max_target_length": 1}, "--max-target-length must be an integer >= 2"),
        ({"size": "mini"}, "A preset brings its own size: leave out either PRESET or --size"),
        ({"test": "no.tsv"}, "--test must be a file of pairs. Received: 'no.tsv', where there is"),
    ],
)
def test_settings_that_cannot_be_are_told(folder, tmp_path, options, sentence):
    files = dict.fromkeys(("train", "valid"), folder / "good.tsv")
    out = tmp_path / "out"
    assert sentence in cases.failure(folder / "preset", out=out, **{**files, **options})
    assert not out.exists()


def test_all_mistakes_of_a_command_line_are_told_at_once(tmp_path):
    options = {"train": tmp_path / "no.tsv", "valid": None, "position": "tupe_q", "seeds": 0}
    message = cases.failure(out=tmp_path / "out", **options)
    wanted = ["--train must be a file of pairs", "--valid must name a file of pairs"]
    wanted += ["--position must be one of", "--seeds must be an integer >= 1"]
    assert all(part in message for part in wanted)
    assert len(message.splitlines()) == len(wanted)


def test_rows_longer_than_the_position_tables_of_a_preset_are_refused(folder, tmp_path):
    preset = cases.save_preset(tmp_path / "preset", position="absolute")
    files = dict.fromkeys(("train", "valid"), folder / "good.tsv")
    message = cases.failure(preset, out=tmp_path / "out", max_source_length=13, **files)
    assert "must not be above the rows of the preset's position tables, 12." in message


def test_a_preset_of_another_kind_of_model_is_refused(folder, tmp_path):
    tokenizer = cases.model().preprocessor.tokenizer
    backbone = TupeBackbone(tokenizer.vocabulary_size(), 1, 1, 4, 4)
    text = TupeMaskedLMPreprocessor(tokenizer)
    TupeMaskedLM(backbone, preprocessor=text).save_to_preset(str(tmp_path / "preset"))
    files = dict.fromkeys(("train", "valid"), folder / "good.tsv")
    message = cases.failure(tmp_path / "preset", out=tmp_path / "out", **files)
    assert "PRESET must be that of a model of pairs, with a TupeSeq2SeqBackbone" in message
    assert message.endswith("of TupeBackbone")
    words = commands.words_of(folder, out=tmp_path / "out", **files)
    told = commands.refusal("finetune_seq2seq", *words, code=2)
    assert "PRESET must be the folder of a preset of this package" in told
    assert not (tmp_path / "out").exists()


def test_commands_of_other_models_refuse_a_preset_of_pairs(folder):
    with pytest.raises(ValueError, match=r"a model of pairs is for `keras-tupe finetune_seq2seq`"):
        load_preset(folder / "preset")
