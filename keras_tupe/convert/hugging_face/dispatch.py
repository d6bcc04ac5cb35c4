"""Models of Hugging Face, whatever their kind: seen from `model_type`, and from our model."""

import pathlib

from keras_tupe.convert.hugging_face.config import read_json
from keras_tupe.convert.hugging_face.from_hf_bert import from_hf_bert
from keras_tupe.convert.hugging_face.gpt_2.read import from_hf_gpt2
from keras_tupe.convert.hugging_face.gpt_2.write import to_hf_gpt2
from keras_tupe.convert.hugging_face.longformer.read import from_hf_longformer
from keras_tupe.convert.hugging_face.longformer.write import to_hf_longformer
from keras_tupe.convert.hugging_face.to_hf_bert import to_hf_bert

_READERS = {
    "bert": from_hf_bert,
    "gpt2": from_hf_gpt2,
    "longformer": from_hf_longformer,
}
_WRITERS = {  # by the attention pattern
    "full": to_hf_bert,
    "causal": to_hf_gpt2,
    "sliding_window": to_hf_longformer,
}


def from_hf(folder, dtype=None, num_global=None):
    """Returns a model with the weights of a Hugging Face folder, and what became of them.

    The kind of model is the `model_type` in `config.json`:

        bert        `from_hf_bert`        a `TupeMaskedLM`
        gpt2        `from_hf_gpt2`        a `TupeCausalLM`
        longformer  `from_hf_longformer`  a `TupeMaskedLM`

    Args:
        folder: path of a local folder with `config.json` and the weights, in safetensors or torch's
            format, whole or in parts. Nothing in it is run, and torch is not needed.
        dtype: Keras dtype policy of the model. Defaults to the global one.
        num_global: of a Longformer, tokens at the beginning that are global. Defaults to 1, [CLS].

    Returns:
        `(model, report)`: the model and a `Report`.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if the kind of model is none of these, `num_global` is given for another one
            than a Longformer, or as its function says.

    Example:
        >>> import os, tempfile
        >>> from keras_tupe.convert import from_hf, to_hf
        >>> backbone = keras_tupe.TupeBackbone(100, 1, 2, 16, 32, position="absolute")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     to_hf(keras_tupe.TupeMaskedLM(backbone), os.path.join(folder, "bert"))
        ...     model, report = from_hf(os.path.join(folder, "bert"))
        >>> type(model).__name__
        'TupeMaskedLM'
    """
    kind = read_json(pathlib.Path(folder, "config.json")).get("model_type")
    if not isinstance(kind, str) or kind not in _READERS:
        raise ValueError(
            f"The model_type in config.json must be one of {list(_READERS)}; other models have no "
            f"counterpart here. Received: {str(folder)!r} with model_type={kind!r}"
        )
    if num_global is not None and kind != "longformer":
        raise ValueError(
            "`num_global` belongs to a Longformer. "
            f"Received: num_global={num_global!r} for model_type={kind!r}"
        )
    options = {} if num_global is None else {"num_global": num_global}
    return _READERS[kind](folder, dtype=dtype, **options)


def to_hf(model, folder):
    """Writes a model in the format of Hugging Face: as GPT-2, Longformer or BERT.

    The attention pattern says which: "causal" is written by `to_hf_gpt2`, "sliding_window" by
    `to_hf_longformer`, any other by `to_hf_bert`.

    Args:
        model: a `TupeMaskedLM`, a `TupeCausalLM` or a `TupeBackbone`.
        folder: path of a folder that does not exist yet; it appears when it is complete.

    Raises:
        TypeError: if `model` is another kind of model.
        ValueError: if the folder exists, or naming all that Hugging Face's model cannot do.
        OSError: if the files cannot be written.
    """
    pattern = getattr(getattr(model, "backbone", model), "attention_pattern", "full")
    _WRITERS.get(pattern, to_hf_bert)(model, folder)
