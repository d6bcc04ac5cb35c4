"""Readers of other people's weights, configurations and vocabularies."""

import functools
import json
import shutil

import bert_cases
import hf_cases
import keras_hub
import numpy as np
import torch_cases
from fuzz_engine import Reader
from golden_cases import GOLDEN

from keras_tupe._vocabulary_files import read_lines
from keras_tupe.convert import (
    from_hf,
    from_keras_hub_bert,
    from_tupe_checkpoint,
    sources,
    torch_file,
)
from keras_tupe.convert._folder import read_hf_weights, read_json
from keras_tupe.convert.architectures import CONVERTERS
from keras_tupe.convert.hugging_face import read_config
from keras_tupe.convert.sentence_transformers import read_settings
from keras_tupe.convert.tokenizer_files import read_vocabulary
from keras_tupe.convert.tupe_checkpoint import read_fairseq_dictionary
from keras_tupe.tokenizers import ByteLevelBpe

_SETTINGS = {"do_lower_case": True, "strip_accents": None, "tokenizer_class": "BertTokenizer"}
_NORMALIZER = {"type": "BertNormalizer", "lowercase": True, "strip_accents": None}
_ARGS = {
    "encoder_layers": 1,
    "encoder_attention_heads": 2,
    "encoder_embed_dim": 6,
    "encoder_ffn_embed_dim": 7,
    "max_positions": 8,
    "rel_pos": False,
    "dropout": 0.1,
}


def _write_hf(folder, parts=False):
    bert_cases.write_hf(folder, pieces=bert_cases.PIECES, settings=_SETTINGS)
    vocabulary = {piece: place for place, piece in enumerate(bert_cases.PIECES)}
    whole = {
        "normalizer": _NORMALIZER,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": vocabulary},
        "added_tokens": [{"id": 0, "content": "[PAD]", "special": True}],
    }
    special = {"pad_token": "[PAD]", "mask_token": {"content": "[MASK]", "lstrip": True}}
    for name, content in (("tokenizer", whole), ("special_tokens_map", special)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    if parts:
        place = folder / "model.safetensors"
        place.rename(folder / "part-1.safetensors")
        index = {"weight_map": dict.fromkeys(bert_cases.released_weights(), "part-1.safetensors")}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def _read_hf_parts(folder):
    problems = []
    for read in (
        lambda: read_config(CONVERTERS["bert"], read_json(folder / "config.json"), str(folder)),
        lambda: read_vocabulary(folder, bert_cases.CONFIG["vocab_size"]),
        lambda: read_hf_weights(folder),
    ):
        try:
            read()
        except (ValueError, FileNotFoundError) as error:
            problems.append(error)
    if problems:
        raise problems[0]


def _write_golden(folder, name):
    sources = (GOLDEN / name, hf_cases.BYTE_PAIRS[name])
    for file in (file for source in sources for file in source.iterdir()):
        (folder / file.name).write_bytes(file.read_bytes())
    classes = {"gpt2": "GPT2Tokenizer", "longformer": "LongformerTokenizer"}
    settings = {"tokenizer_class": classes[name], "add_prefix_space": False, "unk_token": None}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def _write_sentence_transformers(folder):
    shutil.copytree(GOLDEN / "sentence_transformers", folder, dirs_exist_ok=True)


def _write_byte_pairs(folder):
    _write_golden(folder, "gpt2")
    for name in ("model.safetensors", "config.json", "tokenizer_config.json"):
        (folder / name).unlink()


def _write_torch(folder, legacy):
    weights = {
        "a": np.arange(6, dtype="f").reshape(2, 3),
        "b": np.arange(4, dtype="int64"),
        "c": np.ones(3, "float16"),
    }
    content = torch_cases.checkpoint_file(weights, _ARGS, legacy, epoch=3, best_loss=1.5)
    (folder / "model.pt").write_bytes(content)


def _read_torch(folder):
    return torch_file.read(folder / "model.pt")


def _write_tupe(folder):
    name = "fairseq_tupe_r.pt"
    (folder / name).write_bytes((GOLDEN / name).read_bytes())


def _read_tupe(folder):
    return from_tupe_checkpoint(folder / "fairseq_tupe_r.pt")


def _write_keras_hub(folder):
    tokenizer = keras_hub.models.BertTokenizer(bert_cases.PIECES, lowercase=True)
    backbone = keras_hub.models.BertBackbone(len(bert_cases.PIECES), 1, 2, 6, 7)
    preprocessor = keras_hub.models.BertMaskedLMPreprocessor(tokenizer, sequence_length=8)
    keras_hub.models.BertMaskedLM(backbone, preprocessor).save_to_preset(str(folder))


def _write_vocabulary(folder):
    (folder / "vocab.txt").write_text("\n".join(bert_cases.PIECES))


def _read_vocabulary(folder):
    if (folder / "vocab.txt").is_file():
        read_lines(folder / "vocab.txt")


READERS = [
    Reader("Hugging Face: files", _write_hf, _read_hf_parts),
    Reader(
        "Hugging Face: weights in parts",
        functools.partial(_write_hf, parts=True),
        read_hf_weights,
        files=("model*", "part*"),
    ),
    Reader("Hugging Face: model", _write_hf, from_hf, quick=2),
    *(
        Reader(
            f"Hugging Face: {name}", functools.partial(_write_golden, name=name), from_hf, quick=2
        )
        for name in ("gpt2", "longformer")
    ),
    Reader(
        "sentence-transformers: settings",
        _write_sentence_transformers,
        read_settings,
        files=("modules.json", "*sentence*.json", "*/*.json", "tokenizer_config.json"),
    ),
    Reader(
        "byte-level pieces",
        _write_byte_pairs,
        lambda folder: ByteLevelBpe(folder / "vocab.json").tokenize(["the \u65e5"]),
    ),
    Reader("torch zip", functools.partial(_write_torch, legacy=False), _read_torch),
    Reader("torch legacy", functools.partial(_write_torch, legacy=True), _read_torch),
    Reader("TUPE checkpoint", _write_tupe, _read_tupe, quick=2),
    Reader(
        "fairseq dictionary",
        lambda folder: (folder / "dict.txt").write_text("the 12\n, 11\ncat 3\n<mask> 1\n"),
        lambda folder: read_fairseq_dictionary(folder / "dict.txt"),
    ),
    Reader("pieces", _write_vocabulary, _read_vocabulary),
    Reader("KerasHub BERT", _write_keras_hub, from_keras_hub_bert, quick=2),
    Reader(
        "convert.load: our preset's config.json",
        _write_hf,
        lambda folder: [one.fits(folder) for one in sources.SOURCES] and sources._dtype(folder),
        files=("config.json",),
    ),
]
