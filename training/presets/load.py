"""Presets of this package, loaded as what they are."""

import json
import pathlib

from keras_tupe import (
    TupeBackbone,
    TupeCausalLM,
    TupeCausalLMPreprocessor,
    TupeMaskedLM,
    TupeMaskedLMPreprocessor,
    TupeMaskedPairLM,
    TupeMaskedPairLMPreprocessor,
    TupeSeq2SeqLM,
    TupeSeq2SeqLMPreprocessor,
    TupeSpanExtractor,
    TupeTextClassifier,
    TupeTextClassifierPreprocessor,
    TupeTextEmbedder,
    TupeTokenDiscriminator,
    TupeTokenizer,
)
from keras_tupe.models.presets import check_known, check_preset
from training.presets.checks import is_seq2seq, read_object
from training.presets.of_run import run_of_preset

_TASKS = {
    kind.__name__: kind
    for kind in (
        TupeMaskedLM,
        TupeMaskedPairLM,
        TupeTokenDiscriminator,
        TupeCausalLM,
        TupeTextClassifier,
        TupeTextEmbedder,
        TupeSpanExtractor,
    )
}
_PREPROCESSORS = {
    kind.__name__: kind
    for kind in (
        TupeMaskedLMPreprocessor,
        TupeMaskedPairLMPreprocessor,
        TupeCausalLMPreprocessor,
        TupeTextClassifierPreprocessor,
    )
}


def load_preset(folder, dtype=None):
    """Returns the model of a preset, and what makes its inputs of text.

    Args:
        folder: what `save_to_preset` of a `TupeBackbone`, `TupeMaskedLM`, `TupeMaskedPairLM`,
            `TupeTokenDiscriminator`, `TupeCausalLM`, `TupeTextClassifier`, `TupeTextEmbedder` or
            `TupeSpanExtractor` wrote.
        dtype: Keras dtype policy of the model; `None` for float32, or float64 if it was saved in
            that.

    Returns:
        The model, without its preprocessor; and
        the preprocessor, or else a `TupeTokenizer`, or `None` if there is neither. Of a
        `TupeMaskedPairLM` the `TupeMaskedLM` in it: its head for pairs is of no other use.

    Raises:
        ValueError, OSError: if it is not such a folder, or cannot be loaded.
    """
    folder = pathlib.Path(folder).resolve()  # KerasHub has presets with names of its own
    config = read_object(folder / "config.json")
    if not str(config.get("registered_name", "")).startswith("keras_tupe>"):
        raise ValueError(
            "The preset must be a folder of this package, with a config.json of a TupeBackbone, as "
            "`keras-tupe pretrain`, `keras-tupe convert` and `save_to_preset` write it. "
            f"Received: {str(folder)!r}"
        )
    if is_seq2seq(folder):
        raise ValueError(
            "The preset must be that of a TupeBackbone; a model of pairs is for `keras-tupe "
            "finetune_seq2seq`, `generate` and `export`, and `TupeSeq2SeqLM.from_preset`. "
            f"Received: a TupeSeq2SeqBackbone in {str(folder)!r}"
        )
    check_known(folder, _dictionary(config, "config"), only_carried=False)
    check_preset(str(folder))
    task = read_object(folder / "task.json").get("class_name")
    kind = TupeBackbone
    keywords = {"dtype": dtype or _dtype(config)}
    if task in _TASKS:
        kind, keywords = _TASKS[task], {**keywords, "preprocessor": None}
    preprocessor = read_object(folder / "preprocessor.json").get("class_name")
    text = _PREPROCESSORS.get(preprocessor, TupeTokenizer)
    has_text = preprocessor in _PREPROCESSORS or (folder / "tokenizer.json").is_file()
    model = kind.from_preset(str(folder), **keywords)
    made = text.from_preset(str(folder)) if has_text else None
    if isinstance(model, TupeMaskedPairLM):
        model = model.masked_lm()
    return model, made.masked_lm() if isinstance(made, TupeMaskedPairLMPreprocessor) else made


def load_seq2seq(folder):
    """Returns the `TupeSeq2SeqLM` of a preset, with its preprocessor.

    Args:
        folder: what `save_to_preset` of a `TupeSeq2SeqLM` wrote.

    Raises:
        ValueError, OSError: if it has no preprocessor, or cannot be loaded.
    """
    folder = pathlib.Path(folder).resolve()
    if not (folder / "preprocessor.json").is_file():
        raise ValueError(
            "The preset of a model of pairs must have a preprocessor, which makes rows of texts. "
            f"Save the model with one. Received: {str(folder)!r}, without preprocessor.json"
        )
    dtype = _dtype(read_object(folder / "config.json"))
    text = TupeSeq2SeqLMPreprocessor.from_preset(str(folder))
    return TupeSeq2SeqLM.from_preset(str(folder), preprocessor=text, dtype=dtype)


def origin(folder):
    """Returns what is known of a preset's making: the run of `training.pretrain` it is of.

    Another preset in the folder of a run, a converted one say, is not that run's.

    Args:
        folder: a preset.

    Returns:
        Dictionary with `command`, `commit`, `data` and `metrics`; empty if there is no such run.
    """
    folder = pathlib.Path(folder).resolve()
    run, step = run_of_preset(folder)
    if run is None:
        return {}
    record = read_object(run / "settings.json")
    settings = _dictionary(record, "settings")
    position = settings.get("position")
    if isinstance(settings.get("position_file"), str):
        position = pathlib.Path(settings["position_file"]).stem
    config = _dictionary(read_object(folder / "config.json"), "config")
    if config.get("position") != position:
        return {}
    found = {name: record[name] for name in ("command", "commit", "data") if name in record}
    try:
        names, *lines = (run / "valid.csv").read_text(encoding="utf-8").split()
        columns = names.split(",")
        of_steps = [dict(zip(columns, map(float, x.split(",")), strict=True)) for x in lines]
        of_steps = [one for one in of_steps if step in (None, one["step"])]
        return {**found, "metrics": of_steps[-1]} if of_steps else found
    except (OSError, ValueError, KeyError):
        return found


def _dtype(config):
    """Returns the dtype policy of a preset's model: float64 if it was saved in that."""
    is_float64 = '"float64"' in json.dumps(_dictionary(config, "config").get("dtype"))
    return "float64" if is_float64 else "float32"


def _dictionary(content, name):
    found = content.get(name)
    return found if isinstance(found, dict) else {}
