"""GPT-2: pre-LN blocks, causal attention, one token embedding for input and output."""

from keras_tupe.convert.architectures import (
    NUMBER,
    RATE,
    SIZE,
    Converter,
    Entry,
    Head,
    bert,
    built_as,
)
from keras_tupe.convert.tokenizer_files import GPT_2

CONVERTER = Converter(
    title="GPT-2",
    model_type="gpt2",
    trunk="GPT2Model",
    heads={
        "TupeCausalLM": Head(
            "GPT2LMHeadModel",
            rows=lambda backbone, config: {
                "sequence_length": backbone.max_sequence_length,
                "add_start_token": False,
            },
        )
    },
    others=("DoubleHeadsModel", "LMHeadModel", *bert.OTHERS),
    entries=(
        Entry("vocab_size", "vocabulary_size"),
        Entry("n_positions", "max_sequence_length"),
        Entry("n_embd", "hidden_dim"),
        Entry("n_layer", "num_layers"),
        Entry("n_head", "num_heads"),
        Entry("n_inner", None, SIZE, None),
        bert.activation("activation_function", "gelu_new"),
        Entry("resid_pdrop", "dropout", RATE, 0.1),
        Entry("embd_pdrop", None, RATE, 0.1),
        Entry("attn_pdrop", None, RATE, 0.1),
        Entry("layer_norm_epsilon", "layer_norm_epsilon", NUMBER, 1e-5),
        Entry("initializer_range", "initializer_range", NUMBER, 0.02),
    ),
    fixed={
        "scale_attn_weights": (True, "attention logits that are not divided by sqrt(head size)"),
        "scale_attn_by_inverse_layer_idx": (False, "logits divided by the number of the layer"),
    },
    ours={
        "position": "absolute",
        "attention_pattern": "causal",
        "normalize_first": True,
        "normalize_embeddings": False,
        "num_segments": 0,
    },
    # four times the width of the states by default
    read=lambda config: {"intermediate_dim": config["n_inner"] or 4 * config["n_embd"]},
    write=lambda backbone, config, preprocessor: {"n_inner": backbone.intermediate_dim},
    suits=built_as("causal"),
    names={
        "token_embedding": "wte",
        "position_embedding": "wpe",
        "block_#/attention_layer_norm": "h.#.ln_1",
        **{f"block_#/attention/{x}": f"h.#.attn.c_attn.{x}" for x in ("query", "key", "value")},
        "block_#/attention/output": "h.#.attn.c_proj",
        "block_#/feedforward_layer_norm": "h.#.ln_2",
        "block_#/feedforward_intermediate": "h.#.mlp.c_fc",
        "block_#/feedforward_output": "h.#.mlp.c_proj",
        "final_layer_norm": "ln_f",
    },
    prefix="transformer",
    linear=False,  # its `Conv1D` keeps kernels (in, out)
    fused={"h.#.attn.c_attn": ("query", "key", "value")},
    tied={"lm_head.weight": "wte.weight"},
    dropped={
        **dict.fromkeys(("score.", "multiple_choice_head."), bert.DROPPED["classifier."]),
        **dict.fromkeys(("h.#.attn.bias", "h.#.attn.masked_bias"), bert.CONSTANT),
        **bert.DROPPED,
    },
    frame=GPT_2,
    ids={"bos_token_id": ("end_token_id", -1), "eos_token_id": ("end_token_id", -1)},
)
