"""Our models with windows in the format of Hugging Face's Longformer."""

from keras_tupe.convert._assign import weights_by_path
from keras_tupe.convert.hugging_face.longformer.config import config_of
from keras_tupe.convert.hugging_face.longformer.layout import GLOBAL_SIDES, longformer_layout
from keras_tupe.convert.hugging_face.padding_rows import add_rows, add_segments
from keras_tupe.convert.hugging_face.write import (
    backbone_and_tokenizer,
    new_hf_folder,
    other_head,
    refuse,
    sharing,
    their_arrays,
    write_json,
)
from keras_tupe.convert.tokenizer_files import (
    FAIRSEQ_IDS,
    LONGFORMER,
    special_ids,
    vocabulary_problems,
    write_vocabulary,
)
from keras_tupe.models import TupeBackbone, TupeMaskedLM


def to_hf_longformer(model, folder):
    """Writes a model with windows in the format of Hugging Face's Longformer.

    `transformers` loads it with `LongformerForMaskedLM.from_pretrained(folder)` (a backbone alone
    with `LongformerModel`). `from_hf_longformer` gives the same weights back, bit by bit. Which
    tokens are global is an input there: pass a `global_attention_mask` with ones for the
    first `num_global`.

    Differences from the source: the rows of the position table that stand for padding are zero.
    A model without segments gets one segment of zeros. Where no token is global the projections
    for global tokens are those for all others. Where global tokens share the projections of the
    others, theirs are copies.

    Args:
        model: a `TupeMaskedLM` or a `TupeBackbone` with `attention_pattern="sliding_window"`, to
            both sides in every layer, absolute positions and post-LN blocks.
        folder: path of a folder that does not exist yet; it appears when it is complete.
            It holds `config.json`, `model.safetensors` and, for a model with a byte-level
            tokenizer, `vocab.json`, `merges.txt` and `tokenizer_config.json`.

    Raises:
        TypeError: if `model` is another kind of model.
        ValueError: if the folder exists, or naming all that Hugging Face's Longformer cannot do.
        OSError: if the files cannot be written.
    """
    backbone, tokenizer = backbone_and_tokenizer(model, (TupeMaskedLM, TupeBackbone), folder)
    problems = [*_problems(backbone), *other_head(model, "gelu")]
    problems += [*vocabulary_problems(tokenizer, backbone, LONGFORMER)]
    refuse("Longformer", problems)
    special = special_ids(tokenizer, FAIRSEQ_IDS)
    has_head = model is not backbone
    found = _weights(model, backbone, special["pad_token_id"] + 1)
    if has_head:
        found = {n if n.startswith("lm_head.") else f"longformer.{n}": found[n] for n in found}
    with new_hf_folder(folder, found) as partial:
        write_json(partial / "config.json", config_of(backbone, special, has_head))
        if tokenizer is not None:
            write_vocabulary(tokenizer, backbone, partial, LONGFORMER)


def _weights(model, backbone, first_row):
    found = their_arrays(
        weights_by_path(model), longformer_layout(backbone.num_layers), backbone.num_heads
    )
    add_rows(found, first_row)
    add_segments(found, 1)
    for name in list(found):
        for side in GLOBAL_SIDES:
            own = f".self.{side.removesuffix('_global')}."
            if own in name:
                # a copy of its own: safetensors refuses weights that share memory
                found.setdefault(name.replace(own, f".self.{side}."), found[name].copy())
    return found


def _problems(backbone):
    found = sharing(backbone)
    if backbone.position != "absolute":
        found.append(f"position={backbone.position!r} must be 'absolute'")
    if backbone.attention_pattern != "sliding_window":
        found.append(f"attention_pattern={backbone.attention_pattern!r} must be 'sliding_window'")
    else:
        options = backbone.pattern_options
        for name, expected in (("causal", False), ("every", None)):
            if (options.get(name) or None) != (expected or None):
                found.append(f"{name}={options[name]!r} must be {expected!r}")
    if backbone.normalize_first:
        found.append("normalize_first=True: Longformer is post-LN")
    if not backbone.normalize_embeddings:
        found.append("normalize_embeddings=False: Longformer normalizes its embeddings")
    if backbone.activation != "gelu":
        found.append(f"activation={backbone.activation!r} must be 'gelu'")
    if backbone.zero_padded_embeddings:
        found.append("zero_padded_embeddings=True: Longformer does not set padding to zero")
    return found
