"""A checkpoint of any kind: read, given another positional method, written."""

import pathlib

from keras_tupe import (
    TupeBackbone,
    TupeCausalLM,
    TupeMaskedLM,
    TupeMaskedPairLM,
    TupeSeq2SeqBackbone,
    TupeSeq2SeqLM,
    TupeTextClassifier,
    TupeTextEmbedder,
    TupeTokenDiscriminator,
    convert,
)
from keras_tupe._new_folder import new_folder
from keras_tupe.convert.hugging_face.files import read_json
from keras_tupe.convert.sentence_transformers.modules import MODULES
from training.command.folder_lock import FolderLock
from training.presets.folder import check_preset_space

_OURS = "keras_tupe>"
_KERAS_HUB = ("keras_hub>", "keras_nlp>")
_TASKS = {
    kind.__name__: kind
    for kind in (
        TupeMaskedLM,
        TupeMaskedPairLM,
        TupeTokenDiscriminator,
        TupeCausalLM,
        TupeSeq2SeqLM,
        TupeTextClassifier,
        TupeTextEmbedder,
    )
}
_DTYPES = ("float64", "bfloat16", "float16")


def convert_checkpoint(settings):
    """Converts a checkpoint; returns the reports.

    Args:
        settings: a `Settings` without problems.

    Raises:
        ValueError, TypeError, ImportError, OSError, RuntimeError: if it cannot be done; nothing
            was written then.
    """
    with FolderLock(settings.out, beside=True):
        model, reports = read_source(
            settings.source, settings.dictionary, settings.num_global, settings.pair_head
        )
        if settings.graft is not None:
            model, report = convert.graft_position(
                model, settings.graft, settings.method_options(), settings.graft_length
            )
            reports.append(report)
        if settings.format == "huggingface":
            convert.to_hf(model, settings.out, model_type=settings.model_type)
        else:
            write_preset(model, settings.out)
    return reports


def read_source(source, dictionary=None, num_global=None, pair_head=False):
    """Returns a model made from a checkpoint of any kind, and the reports on it.

    Args:
        source: path of a file or folder.
        dictionary: optional path of the `dict.txt` of a TUPE checkpoint.
        num_global: optional number of global tokens of a Longformer.
        pair_head: whether the next-sentence head of a BERT is taken too.

    Returns:
        `(model, reports)`; there is no report on a preset of ours.

    Raises:
        ValueError: if it is none of the kinds, or as its reader says.
        FileNotFoundError: if a file is missing.
    """
    path = pathlib.Path(source)
    is_embedder = (path / MODULES).is_file()
    config = {} if path.is_file() or is_embedder else _config(path)
    if num_global is not None and config.get("model_type") != "longformer":
        raise ValueError(
            "--num-global belongs to a Longformer of Hugging Face. "
            f"Received: --num-global {num_global} for {str(source)!r}"
        )
    if pair_head and config.get("model_type") != "bert":
        raise ValueError(
            "--pair-head belongs to a BERT of Hugging Face. "
            f"Received: --pair-head for {str(source)!r}"
        )
    if path.is_file():
        model, report = convert.from_tupe_checkpoint(path, dictionary)
        return model, [report]
    if dictionary is not None:
        raise ValueError(
            "--dictionary belongs to a TUPE checkpoint, a .pt file. "
            f"Received: --dictionary {dictionary!r} for {str(source)!r}"
        )
    if is_embedder:
        model, report = convert.from_sentence_transformers(path)
        return model, [report]
    name = str(config.get("registered_name"))
    if name.startswith(_OURS):
        return _our_preset(path), []
    if name.startswith(_KERAS_HUB):
        model, report = convert.from_keras_hub_bert(path)
    elif "model_type" in config:
        model, report = convert.from_hf(path, num_global=num_global, pair_head=pair_head)
    else:
        raise ValueError(
            "The config.json of SOURCE must have `model_type` (Hugging Face) or `registered_name` "
            f"(KerasHub, or a preset of ours). Received: {str(source)!r} with neither"
        )
    return model, [report]


def write_preset(model, folder):
    """Writes a preset into a new folder, which appears when it is complete."""
    with new_folder(folder) as partial:
        check_preset_space(model, partial.parent)
        model.save_to_preset(str(partial))


def _config(folder):
    path = folder / "config.json"
    if not path.is_file():
        raise FileNotFoundError(
            "SOURCE must be a .pt file, or a folder with a config.json: of a Hugging Face model or "
            f"of a preset; or with the {MODULES} of sentence-transformers. "
            f"Received: {str(folder)!r}"
        )
    return read_json(path)


def _our_preset(folder):
    # absolute, since KerasHub reads a plain name as one of its own presets first
    folder = folder.resolve()
    name = read_json(folder / "config.json").get("class_name")
    kind = TupeSeq2SeqBackbone if name == TupeSeq2SeqBackbone.__name__ else TupeBackbone
    if (folder / "task.json").is_file():
        kind = _TASKS.get(read_json(folder / "task.json").get("class_name"), kind)
    try:
        return kind.from_preset(str(folder), dtype=_dtype(folder))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(
            f"SOURCE must be a whole preset: {reason}. Received: {str(folder)!r}"
        ) from error


def _dtype(folder):
    """Returns the type of a preset's weights, which KerasHub would change to the session's."""
    content = read_json(folder / "config.json")
    for name in ("config", "dtype", "config", "name"):
        content = content.get(name) if isinstance(content, dict) else None
    return content if content in _DTYPES else "float32"  # also under mixed policies
