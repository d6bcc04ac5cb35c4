"""Readers of rows, texts and tasks: checkpoints, prepared folders, corpora, SQuAD, BLiMP, GLUE."""

import bz2
import functools
import gzip
import json
import lzma

import blimp_cases
import glue_cases
import numpy as np
import prepared_directories
import squad_cases
import zstandard
from fuzz_engine import Reader
from safetensors import safe_open

from keras_tupe.data import (
    PREPARATION_FILE,
    Masking,
    PreparedRows,
    file_hash,
    read_blimp,
    read_glue,
    read_squad,
)
from keras_tupe.data.corpus.sources import find_sources, read_source
from keras_tupe.data.rows.json_record import write_sealed_json
from keras_tupe.trainer import strategies
from keras_tupe.trainer.checkpoints import Checkpoints
from training.pretrain.loop import Saver

_TEXT = "The cat sat.\nIt was grey.\n\nAnother document, of one line.\n"
_WIKI = '<doc id="1" url="u" title="t">\nA title\n\nSome text.\n</doc>\n{"text": "x"}\n'
_IDENTITY, _ROWS = {"steps": 3, "position": "tupe_r"}, {"rows_hash": "ab", "length": 8}


def _write_checkpoint(folder):
    random = np.random.default_rng(0)
    arrays = {
        "model/w": random.normal(size=(3, 5)).astype("f"),
        "model/b": np.zeros(3, "f"),
        "trainer/step": np.array(4),
        "optimizer/half": np.ones((2, 2), "float16"),
    }
    facts = {"settings": _IDENTITY, "data": _ROWS, "losses": [1.5, 2.5]}
    Checkpoints(folder).save(4, arrays, facts)


def _read_checkpoint(folder):
    checkpoints = Checkpoints(folder)
    saver = Saver(checkpoints, _IDENTITY, _ROWS, (), writes=False)
    saver.check(4)
    arrays, _ = checkpoints.read(4)
    return {name: array.astype("f8") for name, array in arrays.items()}


def _repair_checkpoint(folder):
    path = Checkpoints(folder).path(4)
    with safe_open(path, "numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        facts = json.loads(file.metadata()["keras_tupe"])
    path.unlink()
    Checkpoints(folder).save(4, arrays, facts)


_SIZES = {"train": 41, "valid": 7}
_FACTS = {"duplicates": 0, "skipped": 0, "corpus_hash": "0" * 64, "fingerprint": {"a": 1}}


def write_prepared(folder, kind="wordpiece"):
    """Writes a folder of prepared rows."""
    if folder.is_dir():
        folder.rmdir()  # what writes makes it
    rows = {name: prepared_directories.make_rows(size, 8) % 300 for name, size in _SIZES.items()}
    prepared_directories.write_directory(folder, rows, rows_per_shard=20, **_FACTS)
    path = folder / "vocabulary.txt"
    path.write_text(path.read_text("utf-8").replace("\u2028", ""), "utf-8")
    repair_prepared(folder)
    if kind == "sentencepiece":
        path.unlink()
        (folder / "vocabulary.spm").write_bytes(prepared_directories.sentencepiece_model())
        _as_sentencepiece(folder)


def _as_sentencepiece(folder):
    from keras_tupe.tokenizers import SentencePieceBpe

    tokenizer = SentencePieceBpe(folder / "vocabulary.spm")
    path = folder / PREPARATION_FILE
    record = json.loads(path.read_bytes())
    facts = record["vocabulary"]
    facts |= {"kind": "sentencepiece", "file": "vocabulary.spm"}
    names = ("pad_id", "unknown_id", "start_id", "end_id", "mask_id")
    facts |= {name: getattr(tokenizer, name) for name in names}
    facts |= {"size": 500, "special_ids": sorted(facts[name] for name in names)}
    facts["size"] = tokenizer.vocabulary_size
    record["sha256"]["vocabulary.spm"] = ""
    del record["sha256"]["vocabulary.txt"]
    path.write_text(json.dumps(record))
    repair_prepared(folder)


def repair_prepared(folder):
    """Makes the hashes in the record right again."""
    path = folder / PREPARATION_FILE
    record = json.loads(path.read_bytes())
    hashes, facts = record["sha256"], record["vocabulary"]
    hashes |= {name: file_hash(folder / name) for name in hashes if (folder / name).is_file()}
    if isinstance(facts, dict) and facts.get("file") in hashes:
        facts["sha256"] = hashes[facts["file"]]
    record.pop("seal", None)
    write_sealed_json(path, record)


def _read_prepared(folder):
    for split in ("train", "valid"):
        rows = PreparedRows(folder, split)
        found = rows[np.array([0, len(rows) - 1])]
        assert found.dtype == "int32"
        Masking.of(rows.vocabulary, whole_word=True)


def _read_sources(folder):
    for source in find_sources([str(folder)]):
        documents = list(read_source(source, max_document_bytes=2_000))
        for document in documents:
            document.text.encode()  # no half of a surrogate pair


def _write_sources(folder):
    lines = "".join(json.dumps({"text": text, "id": n}) + "\n" for n, text in enumerate("abc"))
    (folder / "a.txt").write_text(_TEXT)
    (folder / "a.jsonl").write_text(lines)
    (folder / "wiki_00").write_text(_WIKI)
    (folder / "b.txt.gz").write_bytes(gzip.compress(_TEXT.encode() * 50, mtime=0))
    (folder / "c.txt.xz").write_bytes(lzma.compress(_TEXT.encode() * 50))
    (folder / "d.txt.bz2").write_bytes(bz2.compress(_TEXT.encode() * 50))
    (folder / "e.jsonl.zst").write_bytes(zstandard.compress(lines.encode() * 50))


def _write_glue(folder):
    glue_cases.write_tasks(folder, "sst2", "stsb", "mnli", "qqp", train=3, dev=2)


def _read_glue(folder):
    for task in ("sst2", "stsb", "mnli", "qqp"):
        read_glue(task, folder, "train", check_counts=False)


def _read_blimp(folder):
    for options in ({}, {"skipped": []}):
        read_blimp(folder, **options)


def _read_squad(folder):
    for options in ({"skipped": []}, {}):
        read_squad(folder / "train.json", **options)


def _write_cluster(folder):
    content = {"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}}
    (folder / "cluster.json").write_text(json.dumps(content))


def _read_cluster(folder):
    file = folder / "cluster.json"
    if file.is_file():
        strategies.cluster(file.read_bytes().decode("utf-8", "surrogateescape"))


READERS = [
    Reader("checkpoint", _write_checkpoint, _read_checkpoint, repair=_repair_checkpoint),
    Reader("prepared rows", write_prepared, _read_prepared, repair=repair_prepared),
    Reader(
        "prepared rows, SentencePiece",
        functools.partial(write_prepared, kind="sentencepiece"),
        _read_prepared,
        repair=repair_prepared,
        quick=4,
    ),
    Reader("sources", _write_sources, _read_sources),
    Reader("BLiMP", blimp_cases.write_pairs, _read_blimp),
    Reader(
        "SQuAD",
        lambda folder: squad_cases.write_questions(folder / "train.json", 2),
        _read_squad,
    ),
    Reader("GLUE", _write_glue, _read_glue, files=("*/*.tsv",)),
    Reader("TF_CONFIG", _write_cluster, _read_cluster),
]
