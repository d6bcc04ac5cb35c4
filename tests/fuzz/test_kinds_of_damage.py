"""Each kind of damage that once ended in something else than a clear error, by name."""

import json
import re
import shutil

import fuzz_convert_readers
import fuzz_data_readers
import fuzz_model_readers
import fuzz_training_readers
import numpy as np
import pytest
from fuzz_engine import FINDING, REFUSED, Attack
from fuzz_values import nested

MODULES = (fuzz_data_readers, fuzz_convert_readers, fuzz_training_readers, fuzz_model_readers)
READERS = {reader.name: reader for module in MODULES for reader in module.READERS}
QUICK = [name for name, reader in READERS.items() if reader.quick > 7]
RUN, SETTINGS = "ablation/runs/absolute/seed-0", "ablation/runs/absolute/seed-0/settings.json"


@pytest.fixture(scope="module")
def attacks(tmp_path_factory):
    """Function of a reader's name: its `Attack`, with the files made once."""
    made = {}

    def attack(name):
        if name not in made:
            folder = tmp_path_factory.mktemp("attack") / re.sub(r"\W+", "_", name)
            made[name] = Attack(READERS[name], folder)
        return made[name]

    return attack


def outcome(attack, file, change, repairs=True):
    """Changes one file by a function of its bytes, and returns what the reader makes of it."""
    path = attack.folder / file
    try:
        content = change(path.read_bytes())
        path.unlink()
        path.write_bytes(content)
        if repairs and attack.reader.repair is not None:
            attack.reader.repair(attack.folder)
        return attack._read()
    finally:
        attack.put_back()


def set_to(*path, value):
    """Returns a function that changes one value in the bytes of a JSON file."""

    def change(content):
        record = json.loads(content)
        inner = record
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        return json.dumps(record).encode()

    return change


# === One value is of another kind, too large, or of another place ===

VALUES = {
    "length true": ("prepared rows", "preparation.json", ("length",), True, "not what was"),
    "length 2**60": ("prepared rows", "preparation.json", ("length",), 2**60, "not what was"),
    "length 2**39": ("prepared rows", "preparation.json", ("length",), 2**39, "must hold rows of"),
    "vocabulary a list": (
        *("prepared rows", "preparation.json", ("vocabulary",)),
        ["a"],
        "not what was written",
    ),
    "an id true": (
        "prepared rows",
        "preparation.json",
        ("vocabulary", "unknown_id"),
        True,
        "not what was written",
    ),
    "an id 500": (
        *("prepared rows", "preparation.json", ("vocabulary",)),
        {"kind": "wordpiece", "file": "vocabulary.txt", "size": 500, "lowercase": True}
        | {"sha256": "", "pad_id": 0, "unknown_id": 1, "start_id": 2, "end_id": 3, "mask_id": 500}
        | {"special_ids": [0, 1, 2, 3, 500]},
        "not what was written",
    ),
    "another folder's file": (
        *("prepared rows", "preparation.json", ("sha256", "../../../../etc/passwd")),
        "",
        "not what was written",
    ),
    "splits a text": ("prepared rows", "preparation.json", ("splits",), "x", "not what was"),
    "rows a text": (
        *("prepared rows", "preparation.json", ("splits", "train", "rows")),
        "41",
        "not what was written",
    ),
    "position a list": (
        *("export: backbone config", "assets.extra/keras_tupe_backbone.json"),
        ("config", "position"),
        ["t5"],
        "does not make one",
    ),
    "config a list": (
        *("export: backbone config", "assets.extra/keras_tupe_backbone.json"),
        ("config",),
        [],
        "does not make one",
    ),
    "class_name a list": (
        *("export: backbone config", "assets.extra/keras_tupe_backbone.json"),
        ("config", "dtype", "class_name"),
        [],
        "does not make one",
    ),
    "initializer_range a text": (
        *("export: backbone config", "assets.extra/keras_tupe_backbone.json"),
        ("config", "initializer_range"),
        "x",
        "does not make one",
    ),
    "a part named by half a character": (
        *("Hugging Face: weights in parts", "model.safetensors.index.json"),
        ("weight_map", "cls.predictions.bias"),
        "\ud800",
        "is not there",
    ),
    "a method that is a list": (
        "compare",
        "run0/settings.json",
        ("settings", "position"),
        [],
        "A run",
    ),
    "a method's file 3": (
        "compare",
        "run0/settings.json",
        ("settings", "position_file"),
        3,
        "A run",
    ),
    "an ablation's method 3": (
        "ablation",
        SETTINGS,
        ("settings", "position"),
        3,
        "position is not",
    ),
    "steps true": ("ablation", SETTINGS, ("settings", "steps"), True, "steps is not an integer"),
    "options a text": (
        *("ablation", SETTINGS, ("settings", "position_options")),
        '"x"',
        "must be a dictionary",
    ),
    "options nested": (
        *("ablation", SETTINGS, ("settings", "position_options")),
        nested(10_000),
        "nested too deeply",
    ),
    "a command that is null": (
        "ablation",
        f"{RUN}/glue/results.json",
        ("command",),
        None,
        "NoneType",
    ),
    "a score of text": (
        *("ablation", f"{RUN}/squad/results.json", ("f1", "mean")),
        "3",
        "SQuAD F1 is 3",
    ),
    "a run's commit a list": ("ablation", SETTINGS, ("commit",), ["x"], "and its commit"),
    "changes that are a number": (
        *("experiment: results", f"{RUN}/glue/results.json", ("changes",)),
        3,
        "changes must be a list",
    ),
    "an input's settings a number": (
        *("prepare: inspect", "rows/preparation.json", ("fingerprint",)),
        2.5,
        "other settings",
    ),
    "scores that are a list": (
        "ablation",
        f"{RUN}/glue/results.json",
        ("tasks",),
        [],
        "results of a",
    ),
    "weights of infinite number": (
        *("ablation", f"{RUN}/preset/metadata.json", ("parameter_count",)),
        float("inf"),
        "number of weights",
    ),
    "settings of a grid's run": ("grid", "seed-0/settings.json", ("seed",), [0], "other settings"),
    "a metric beyond floats": (
        "cards of exports",
        "a/card.json",
        ("metrics", "loss"),
        10**400,
        "card",
    ),
    "a card's file elsewhere": (
        *("cards of exports", "a/card.json", ("sha256", "../../../../../../etc/passwd")),
        "",
        "is not a file of the export",
    ),
    "infinite layers": (
        "small files of a preset",
        "config.json",
        ("config", "num_layers"),
        1e999,
        "--",
    ),
    "answers that are numbers": (
        "SQuAD predictions",
        "predictions.json",
        ("a",),
        3,
        "must be a text",
    ),
    "KerasHub's layers 2**40": (
        *("KerasHub BERT", "config.json", ("config", "num_layers")),
        2**40,
        "by the configuration there are at least",
    ),
    "KerasHub's layers true": (
        *("KerasHub BERT", "config.json", ("config", "num_layers")),
        True,
        "num_layers must be an integer > 0",
    ),
    "KerasHub's config a list": ("KerasHub BERT", "config.json", ("config",), ["x"], "is missing"),
    "an experiment's file a number": (
        *("prepare: inspect", "rows/preparation.json", ("corpus_hash",)),
        3,
        "record of the folder",
    ),
}


@pytest.mark.parametrize(("name", "file", "path", "value", "expected"), VALUES.values(), ids=VALUES)
def test_a_value_that_cannot_be_is_refused(name, file, path, value, expected, attacks):
    found = outcome(attacks(name), file, set_to(*path, value=value))
    assert (found.kind, found.key) == (REFUSED, "")
    assert expected in found.text


# === A file of JSON is something else: at every reader ===

CONTENTS = {
    "nested 10,000 deep": nested(10_000).encode(),
    "nested 300 deep": (nested(300, '{"a":', "}").replace(":}", ":0}", 1)).encode(),
    "an integer of 5,000 digits": b'{"a": ' + b"9" * 5_000 + b"}",
    "no UTF-8": b'{"a": "\xff"}',
    "a list": b"[]",
    "a number": b"3",
    "null": b"null",
    "an empty object": b"{}",
    "nothing": b"",
}


@pytest.mark.parametrize("name", QUICK)
def test_no_json_of_another_form_is_a_finding(name, attacks):
    attack = attacks(name)
    files = {path.name: path for path in attack.targets if path.suffix in (".json", ".jsonl")}
    for path in files.values():
        for what, content in CONTENTS.items():
            found = outcome(
                attack,
                path,
                lambda _, content=content: content,
                repairs=path.name == "dataset_info.json",  # behind the hash of a record
            )
            assert found.kind != FINDING, (path.name, what, found)


# === Others ===


@pytest.mark.parametrize("kind", ["wordpiece", "sentencepiece"])
def test_a_vocabulary_of_prepared_rows_that_is_none_is_refused(kind, attacks):
    name, file = {
        "wordpiece": ("prepared rows", "vocabulary.txt"),
        "sentencepiece": ("prepared rows, SentencePiece", "vocabulary.spm"),
    }[kind]
    found = outcome(attacks(name), file, lambda content: b"\xff\xfe" + content)
    assert (found.kind, found.key) == (REFUSED, "")
    assert f"no {kind} vocabulary" in found.text


@pytest.mark.parametrize(
    ("name", "file", "column"),
    [
        ("compare", "run0/log.csv", "seconds"),
        ("compare", "run0/valid.csv", "tokens"),
        ("ablation", f"{RUN}/valid.csv", "tokens"),
        ("log.csv, valid.csv", "run/valid.csv", "step"),
    ],
)
@pytest.mark.parametrize("count", ["inf", "9" * 5_000, "nan", ""])
def test_rows_of_a_log_with_impossible_counts_are_dropped(name, file, column, count, attacks):
    def change(content):
        lines = content.splitlines()
        cells = lines[-1].split(b",")
        cells[lines[0].split(b",").index(column.encode())] = count.encode()
        return b"\n".join([*lines[:-1], b",".join(cells), b""])

    found = outcome(attacks(name), file, change)
    assert found.kind != FINDING, found


@pytest.mark.parametrize(
    ("name", "file", "content", "expected"),
    [
        ("config TOML", "own.toml", f"steps = {nested(10_000)}", "nested too deeply"),
        ("config TOML", "own.toml", "learning_rate = inf", "not finite"),
        ("config TOML", "own.toml", f"learning_rate = {10**400}", "beyond 64 bits"),
        ("experiment TOML", "nobody.toml", f"question = {nested(10_000)}", "nested too deeply"),
    ],
)
def test_toml_that_cannot_be_is_refused(name, file, content, expected, attacks):
    found = outcome(attacks(name), file, lambda _: content.encode())
    assert (found.kind, found.key) == (REFUSED, "")
    assert expected in found.text


def test_an_experiment_of_an_unknown_size_is_refused(attacks):
    found = outcome(
        attacks("experiment TOML"),
        "nobody.toml",
        lambda content: content.replace(b'size = "tiny"', b'size = "tinny"'),
    )
    assert (found.kind, found.key) == (REFUSED, "")
    assert "the nearest is 'tiny'" in found.text


def test_a_part_of_the_weights_that_is_a_folder_is_refused(attacks):
    attack = attacks("Hugging Face: weights in parts")
    part = attack.folder / "part-1.safetensors"
    part.unlink()
    part.mkdir()
    found = attack._read()
    shutil.rmtree(part)
    attack.put_back()
    assert (found.kind, found.key) == (REFUSED, "")


# === The engine itself ===


def test_an_execution_is_the_same_whenever_it_is_repeated(tmp_path):
    reader = READERS["checkpoint"]
    first, second = Attack(reader, tmp_path / "a"), Attack(reader, tmp_path / "b")
    for number in range(8):
        first.damage(3, number)
        second.damage(3, number)
        files = [
            {path.name: path.read_bytes() for path in attack.targets if path.is_file()}
            for attack in (first, second)
        ]
        assert files[0] == files[1]
        first.put_back()
        second.put_back()
    assert np.all([path.is_file() for path in first.targets])


def test_what_is_no_clear_error_is_a_finding(tmp_path):
    import dataclasses

    def read(folder):
        content = (folder / "a.json").read_bytes()
        json.loads(content)["x"]

    reader = dataclasses.replace(
        READERS["SQuAD predictions"],
        write=lambda folder: (folder / "a.json").write_text('{"x": 1}') and None,
        read=read,
    )
    attack = Attack(reader, tmp_path / "files")
    attack.good()
    kinds = {attack.execute(0, number).kind for number in range(40)}
    assert FINDING in kinds
