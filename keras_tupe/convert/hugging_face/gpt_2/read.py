"""GPT-2s of Hugging Face."""

from keras_tupe.convert.bert.fill import fill
from keras_tupe.convert.hugging_face.gpt_2.config import read_config
from keras_tupe.convert.hugging_face.gpt_2.layout import WORDS, cut_fused, gpt_2_layout
from keras_tupe.convert.hugging_face.released import (
    checked_folder,
    left_out,
    plain_names,
    rounding,
)
from keras_tupe.convert.hugging_face.weights import read_hf_weights
from keras_tupe.convert.tokenizer_files import GPT_2, read_vocabulary
from keras_tupe.models import TupeBackbone, TupeCausalLM, TupeCausalLMPreprocessor
from keras_tupe.models.presets.size_check import check_sizes

_HEAD = "the head of a task; fine-tune a new one"
_DROPPED = {
    "score.": _HEAD,
    "classifier.": _HEAD,
    "qa_outputs.": _HEAD,
    "multiple_choice_head.": _HEAD,
}
_CONSTANT = "a constant, not a weight"


def from_hf_gpt2(folder, dtype=None):
    """Returns a causal LM with the weights of a Hugging Face GPT-2, and what became of them.

    The model has pre-LN blocks, causal attention, absolute positions, no layer normalization of
    the embeddings, and the token embedding as its output matrix; GELU is the tanh form where
    `activation_function` is `gelu_new`, as in all that OpenAI released.

    `vocab.json` and `merges.txt`, if they are there, become the tokenizer of a preprocessor for
    rows of the full length, without a start token, as transformers makes them, unless the folder's
    files ask for something that ours does not do; the report says what, and the model takes ids
    only.

    Differences from the source: one dropout rate everywhere, that of the residuals. The pooler,
    which every encoder of this package has, is initialized; a causal LM does not use it.

    Args:
        folder: path of a local folder with `config.json` and the weights, in safetensors or torch's
            format, whole or in parts. Nothing in it is run, and torch is not needed.
        dtype: Keras dtype policy of the model. Defaults to the global one.

    Returns:
        `(model, report)`: a `TupeCausalLM` and a `Report`. Heads of other tasks are dropped.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: naming all that is not supported, missing, left over or of another shape; if
            the output matrix is not the token embedding; if the vocabulary has another size.
    """
    folder = checked_folder(folder)
    arguments, notes = read_config(folder / "config.json")
    tokenizer, more = read_vocabulary(folder, arguments["vocabulary_size"], GPT_2)
    names, found = plain_names(read_hf_weights(folder), "transformer.")
    cut_fused(names, found)
    check_sizes(arguments, [value.shape for value in found.values()], repr(str(folder)), slack=2)
    constants = (".attn.bias", ".attn.masked_bias")
    dropped = left_out(found, {"lm_head.weight": WORDS}, _DROPPED)
    dropped |= {name: _CONSTANT for name in found if name.endswith(constants)}
    backbone = TupeBackbone(**arguments, dtype=dtype)
    preprocessor = None
    if tokenizer is not None:
        preprocessor = TupeCausalLMPreprocessor(
            tokenizer, sequence_length=backbone.max_sequence_length, add_start_token=False
        )
    model = TupeCausalLM(backbone, preprocessor)
    notes = (*notes, *more, *rounding(found, backbone))
    return model, fill(model, found, gpt_2_layout(backbone.num_layers), names, dropped, notes)
