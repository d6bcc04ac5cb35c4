"""Models of Hugging Face, whatever their kind: seen from `model_type`, and from our model."""

import functools
import pathlib

from keras_tupe._keywords import did_you_mean
from keras_tupe.convert.hugging_face.bart.read import from_hf_bart
from keras_tupe.convert.hugging_face.bart.write import to_hf_bart
from keras_tupe.convert.hugging_face.config import read_json
from keras_tupe.convert.hugging_face.encoders import (
    albert,
    deberta,
    electra,
    mpnet,
    roberta,
    roformer,
)
from keras_tupe.convert.hugging_face.encoders.read import read_encoder
from keras_tupe.convert.hugging_face.encoders.write import write_encoder
from keras_tupe.convert.hugging_face.from_hf_bert import from_hf_bert
from keras_tupe.convert.hugging_face.gpt_2.read import from_hf_gpt2
from keras_tupe.convert.hugging_face.gpt_2.write import to_hf_gpt2
from keras_tupe.convert.hugging_face.longformer.read import from_hf_longformer
from keras_tupe.convert.hugging_face.longformer.write import to_hf_longformer
from keras_tupe.convert.hugging_face.to_hf_bert import to_hf_bert
from keras_tupe.models import TupeSeq2SeqBackbone, TupeTokenDiscriminator

_MODULES = (albert, deberta, electra, mpnet, roberta, roformer)
ENCODERS = {module.ENCODER.model_type: module.ENCODER for module in _MODULES}
_READERS = {
    "bart": from_hf_bart,
    "bert": from_hf_bert,
    "gpt2": from_hf_gpt2,
    "longformer": from_hf_longformer,
    **{kind: functools.partial(read_encoder, encoder) for kind, encoder in ENCODERS.items()},
}
_WRITERS = {
    "bart": to_hf_bart,
    "bert": to_hf_bert,
    "gpt2": to_hf_gpt2,
    "longformer": to_hf_longformer,
    **{kind: functools.partial(write_encoder, encoder) for kind, encoder in ENCODERS.items()},
}
# What a model of ours is written as; the first that fits.
_BY_PATTERN = {"causal": "gpt2", "sliding_window": "longformer"}
_BY_POSITION = {"bert_r": "mpnet", "deberta": "deberta", "rope": "roformer"}


def from_hf(folder, dtype=None, num_global=None, pair_head=False):
    """Returns a model with the weights of a Hugging Face folder, and what became of them.

    The kind of model is the `model_type` in `config.json`:

        bart        `from_hf_bart`        a `TupeSeq2SeqLM`
        bert        `from_hf_bert`        a `TupeMaskedLM`, three position methods
        gpt2        `from_hf_gpt2`        a `TupeCausalLM`
        longformer  `from_hf_longformer`  a `TupeMaskedLM`
        albert                            a `TupeMaskedLM` with "absolute", factorised, with groups
        deberta                           a `TupeMaskedLM` with "deberta", as released
        electra                           a `TupeMaskedLM` or a `TupeTokenDiscriminator` with
                                          "absolute", factorised
        mpnet                             a `TupeMaskedLM` with "bert_r"
        roberta                           a `TupeMaskedLM` with "absolute"
        roformer                          a `TupeMaskedLM` with "rope"

    Args:
        folder: path of a local folder with `config.json` and the weights, in safetensors or torch's
            format, whole or in parts. Nothing in it is run, and torch is not needed.
        dtype: Keras dtype policy of the model. Defaults to the global one.
        num_global: of a Longformer, tokens at the beginning that are global. Defaults to 1, [CLS].
        pair_head: of a BERT, whether the head of next-sentence prediction is taken too, for a
            `TupeMaskedPairLM`. Defaults to `False`.

    Returns:
        `(model, report)`: the model and a `Report`.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if the kind of model is none of these, with the nearest one; if `num_global` is
            given for another one than a Longformer, or `pair_head` than a BERT; naming all that is
            not supported, missing, left over or of another shape.

    Example:
        >>> import os, tempfile
        >>> from keras_tupe.convert import from_hf, to_hf
        >>> backbone = keras_tupe.TupeBackbone(100, 1, 2, 16, 32, position="bert_r")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     to_hf(keras_tupe.TupeMaskedLM(backbone), os.path.join(folder, "mpnet"))
        ...     model, report = from_hf(os.path.join(folder, "mpnet"))
        >>> type(model).__name__, model.backbone.position
        ('TupeMaskedLM', 'bert_r')
    """
    kind = read_json(pathlib.Path(folder, "config.json")).get("model_type")
    if not isinstance(kind, str) or kind not in _READERS:
        raise ValueError(
            f"The model_type in config.json must be one of {sorted(_READERS)}; other models have "
            f"no counterpart here.{_nearest(kind)} "
            f"Received: {str(folder)!r} with model_type={kind!r}"
        )
    if num_global is not None and kind != "longformer":
        raise ValueError(
            "`num_global` belongs to a Longformer. "
            f"Received: num_global={num_global!r} for model_type={kind!r}"
        )
    if pair_head and kind != "bert":
        raise ValueError(
            "`pair_head` belongs to a BERT. "
            f"Received: pair_head={pair_head!r} for model_type={kind!r}"
        )
    options = {} if num_global is None else {"num_global": num_global}
    options |= {"pair_head": True} if pair_head else {}
    return _READERS[kind](folder, dtype=dtype, **options)


def to_hf(model, folder, model_type=None):
    """Writes a model in the format of Hugging Face.

    Unless `model_type` says which, the attention pattern and the position method do; a model of
    pairs is written as a "bart", see `to_hf_bart`:

        pattern "causal"          gpt2        `to_hf_gpt2`
        pattern "sliding_window"  longformer  `to_hf_longformer`
        position "bert_r"         mpnet
        position "deberta"        deberta
        position "rope"           roformer
        any other                 bert        `to_hf_bert`

    A model with absolute positions is written as an "albert" if its layers share blocks, as an
    "electra" if it is a discriminator or its embeddings are factorised, and can also be written as
    a "roberta".

    Args:
        model: a `TupeMaskedLM`, `TupeMaskedPairLM`, `TupeTokenDiscriminator`, `TupeCausalLM`,
            `TupeSeq2SeqLM`, `TupeBackbone` or `TupeSeq2SeqBackbone`.
        folder: path of a folder that does not exist yet; it appears when it is complete.
        model_type: kind of model, as `from_hf` has them. Defaults to the one above.

    Raises:
        TypeError: if `model` is another kind of model.
        ValueError: if the kind is not known or the folder exists, or naming all that Hugging Face's
            model cannot do.
        OSError: if the files cannot be written.
    """
    if model_type is not None and model_type not in _WRITERS:
        raise ValueError(
            f"`model_type` must be one of {sorted(_WRITERS)}.{_nearest(model_type)} "
            f"Received: model_type={model_type!r}"
        )
    _WRITERS[model_type or _kind_of(model)](model, folder)


def _kind_of(model):
    backbone = getattr(model, "backbone", model)
    if isinstance(backbone, TupeSeq2SeqBackbone):
        return "bart"
    pattern = getattr(backbone, "attention_pattern", None)
    position = getattr(backbone, "position", None)
    kind = _BY_PATTERN.get(pattern) or _BY_POSITION.get(position, "bert")
    if kind != "bert":
        return kind
    if getattr(backbone, "num_groups", None):
        return "albert"
    is_discriminator = isinstance(model, TupeTokenDiscriminator)
    return "electra" if is_discriminator or getattr(backbone, "embedding_dim", None) else "bert"


def _nearest(kind):
    """Returns which kind is the most like another, as a sentence, or nothing."""
    return did_you_mean(kind, _READERS).replace("Did you mean", "The nearest is").replace("?", ".")
