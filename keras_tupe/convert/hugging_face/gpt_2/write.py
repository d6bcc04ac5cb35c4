"""Our causal models in the format of Hugging Face's GPT-2."""

from keras_tupe.convert._assign import weights_by_path
from keras_tupe.convert.hugging_face.gpt_2.config import ACTIVATIONS, config_of
from keras_tupe.convert.hugging_face.gpt_2.layout import gpt_2_layout, join_fused
from keras_tupe.convert.hugging_face.write import (
    backbone_and_tokenizer,
    new_hf_folder,
    refuse,
    sharing,
    their_arrays,
    write_json,
)
from keras_tupe.convert.tokenizer_files import GPT_2, vocabulary_problems, write_vocabulary
from keras_tupe.models import TupeBackbone, TupeCausalLM


def to_hf_gpt2(model, folder):
    """Writes a causal model in the format of Hugging Face's GPT-2.

    `transformers` loads it with `GPT2LMHeadModel.from_pretrained(folder)` (a backbone alone with
    `GPT2Model`). `from_hf_gpt2` gives the same weights back, bit by bit.

    Differences from the source: the pooler is left out, since GPT-2 has none.

    Args:
        model: a `TupeCausalLM` or a `TupeBackbone` with `attention_pattern="causal"`, absolute
            positions, `normalize_first=True` and `normalize_embeddings=False`.
        folder: path of a folder that does not exist yet; it appears when it is complete.
            It holds `config.json`, `model.safetensors` and, for a model with a byte-level
            tokenizer, `vocab.json`, `merges.txt` and `tokenizer_config.json`.

    Raises:
        TypeError: if `model` is another kind of model.
        ValueError: if the folder exists, or naming all that Hugging Face's GPT-2 cannot do.
        OSError: if the files cannot be written.
    """
    backbone, tokenizer = backbone_and_tokenizer(model, (TupeCausalLM, TupeBackbone), folder)
    refuse("GPT-2", [*_problems(backbone), *vocabulary_problems(tokenizer, backbone, GPT_2)])
    layout = gpt_2_layout(backbone.num_layers)
    weights = {path: weight for path, weight in weights_by_path(model).items() if path in layout}
    found = their_arrays(weights, layout, backbone.num_heads)
    join_fused(found)
    has_head = model is not backbone
    prefix = "transformer." if has_head else ""
    end_id = getattr(tokenizer, "end_token_id", None)
    end_id = backbone.vocabulary_size - 1 if end_id is None else end_id
    with new_hf_folder(folder, {prefix + name: found[name] for name in found}) as partial:
        write_json(partial / "config.json", config_of(backbone, end_id, has_head))
        if tokenizer is not None:
            write_vocabulary(tokenizer, backbone, partial, GPT_2)


def _problems(backbone):
    found = sharing(backbone)
    if backbone.position != "absolute":
        found.append(f"position={backbone.position!r} must be 'absolute'")
    if backbone.attention_pattern != "causal":
        found.append(f"attention_pattern={backbone.attention_pattern!r} must be 'causal'")
    if not backbone.normalize_first:
        found.append("normalize_first=False: GPT-2 is pre-LN")
    if backbone.normalize_embeddings:
        found.append("normalize_embeddings=True: GPT-2 does not normalize its embeddings")
    if backbone.num_segments:
        found.append(f"num_segments={backbone.num_segments}: GPT-2 has none")
    if backbone.zero_padded_embeddings:
        found.append("zero_padded_embeddings=True: GPT-2 does not set padding to zero")
    if backbone.activation not in ACTIVATIONS.values():
        found.append(f"activation={backbone.activation!r} is none that GPT-2 has")
    return found
