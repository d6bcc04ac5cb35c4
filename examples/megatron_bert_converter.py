"""An architecture in a file of its own: Megatron's BERT, whose blocks are pre-LN.

keras_tupe.convert.load_file("examples/megatron_bert_converter.py")
model, report = keras_tupe.convert.load("megatron_bert_folder")
keras_tupe.convert.to_hf(model, "again", model_type="megatron-bert")

Shoeybi et al. 2019, Megatron-LM, Figure 7: what goes into attention and feed-forward networks is
normalized, what comes out is added, and one more layer normalization is behind the last block.
"""

from keras_tupe.convert.architectures import Converter, Head, bert, built_as

SELF = "encoder.layer.#.attention"

NAMES = {
    **{path: name for path, name in bert.NAMES.items() if "norm" not in path},
    "block_#/attention_layer_norm": f"{SELF}.ln",
    "block_#/feedforward_layer_norm": "encoder.layer.#.ln",
    "final_layer_norm": "encoder.ln",
}

CONVERTER = Converter(
    title="Megatron-BERT",
    model_type="megatron-bert",
    trunk="MegatronBertModel",
    heads={
        "TupeMaskedLM": Head(
            "MegatronBertForMaskedLM", bert.HEAD, lambda _: {"head_activation": "gelu"}
        ),
        "TupeMaskedPairLM": Head(
            "MegatronBertForPreTraining",
            {**bert.HEAD, "pair_logits": "cls.seq_relationship"},
            option="pair_head",
        ),
    },
    others=bert.OTHERS,
    entries=bert.trunk(),
    fixed={
        "is_decoder": (False, "decoders"),
        "position_embedding_type": ("absolute", "relative positions"),
    },
    ours={"position": "absolute", "normalize_first": True, "normalize_embeddings": False},
    suits=lambda backbone: built_as()(backbone) and backbone.normalize_first,
    names=NAMES,
    prefix="bert",
    segments=2,
    tied=bert.TIED,
    dropped=bert.CONVERTER.dropped,
    frame=bert.CONVERTER.frame,
    ids=bert.CONVERTER.ids,
)
