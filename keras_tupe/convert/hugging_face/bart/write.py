"""Our models of pairs in the format of Hugging Face's BART."""

import numpy as np

from keras_tupe.convert._assign import weights_by_path
from keras_tupe.convert.hugging_face.bart.config import (
    LAYER_NORM_EPSILON,
    config_of,
)
from keras_tupe.convert.hugging_face.bart.layout import LOGITS_BIAS, WORDS, bart_layout
from keras_tupe.convert.hugging_face.encoders._encoder import ACTIVATIONS
from keras_tupe.convert.hugging_face.write import (
    backbone_and_tokenizer,
    new_hf_folder,
    refuse,
    their_arrays,
    write_json,
)
from keras_tupe.convert.tokenizer_files import (
    BART,
    FAIRSEQ_IDS,
    special_ids,
    vocabulary_problems,
    write_vocabulary,
)
from keras_tupe.models import TupeSeq2SeqBackbone, TupeSeq2SeqLM

_EXPECTED = {
    "position": "absolute",
    "normalize_first": False,
    "normalize_embeddings": True,
    "layer_norm_epsilon": LAYER_NORM_EPSILON,
}


def to_hf_bart(model, folder):
    """Writes a model of pairs in the format of Hugging Face's BART.

    `transformers` loads it with `BartForConditionalGeneration.from_pretrained(folder)` (a backbone
    alone with `BartModel`). `from_hf_bart` gives the same weights back, bit by bit.

    Differences from the source: the first two rows of the position tables, which no token has, are
    zero. As in the released models its `generate` forces the end token at the end of a row that is
    full, and `<s>` behind `</s>`; both are in `config.json`.

    Args:
        model: a `TupeSeq2SeqLM` or a `TupeSeq2SeqBackbone` with absolute positions, post-LN blocks,
            normalized embeddings and `layer_norm_epsilon=1e-5`.
        folder: path of a folder that does not exist yet; it appears when it is complete.
            It holds `config.json`, `model.safetensors` and, for a model with a byte-level
            tokenizer, `vocab.json`, `merges.txt` and `tokenizer_config.json`.

    Raises:
        TypeError: if `model` is another kind of model.
        ValueError: if the folder exists, or naming all that Hugging Face's BART cannot do.
        OSError: if the files cannot be written.
    """
    kinds = (TupeSeq2SeqLM, TupeSeq2SeqBackbone)
    backbone, tokenizer = backbone_and_tokenizer(model, kinds, folder)
    refuse("BART", [*_problems(backbone), *vocabulary_problems(tokenizer, backbone, BART)])
    layout = bart_layout(backbone.num_layers, backbone.num_decoder_layers)
    found = their_arrays(weights_by_path(model), layout, backbone.num_heads)
    has_head = model is not backbone
    if has_head:
        found = {f"model.{name}": value for name, value in found.items()}
        words = found[f"model.{WORDS}"]
        found[LOGITS_BIAS] = np.zeros((1, len(words)), words.dtype)
    preprocessor = getattr(model, "preprocessor", None)
    starts_with_end = getattr(preprocessor, "decoder_starts_with_end", True)
    special = special_ids(tokenizer, FAIRSEQ_IDS)
    config = config_of(backbone, special, starts_with_end, has_head)
    with new_hf_folder(folder, found) as partial:
        write_json(partial / "config.json", config)
        if tokenizer is not None:
            write_vocabulary(tokenizer, backbone, partial, BART)


def _problems(backbone):
    found = [
        f"{name}={getattr(backbone, name)!r} must be {value!r}"
        for name, value in _EXPECTED.items()
        if getattr(backbone, name) != value
    ]
    if backbone.activation not in ACTIVATIONS.values():
        found.append(f"activation={backbone.activation!r} is none that BART has")
    return found
