"""ELECTRA: generators and discriminators, with factorised embeddings (Clark et al. 2020)."""

from keras_tupe.convert.architectures import Entry, Head, bert, built_as
from keras_tupe.convert.tokenizer_files import ELECTRA

WIDTH = Entry(  # of embeddings; ours is `None` where it is that of the states
    *("embedding_size", "embedding_dim"),
    default=128,
    read=lambda width, config: None if width in (None, config["hidden_size"]) else width,
    write=lambda width, config: width or config["hidden_size"],
)

CONVERTER = bert.relative(
    "ELECTRA",
    "Electra",
    heads={
        "TupeMaskedLM": Head(
            "ElectraForMaskedLM",
            bert.mlm_head(
                *("generator_predictions.dense", "generator_predictions.LayerNorm"),
                "generator_lm_head.bias",
            ),
            bert.gelu,
        ),
        "TupeTokenDiscriminator": Head(
            "ElectraForPreTraining",
            {
                "discriminator_head/dense": "discriminator_predictions.dense",
                "discriminator_head/prediction": "discriminator_predictions.dense_prediction",
            },
            needs={"activation": "gelu"},  # its own is that of the blocks there, and gelu here
        ),
    },
    entries=bert.trunk(WIDTH),
    suits=lambda backbone: (
        built_as()(backbone)
        and getattr(backbone, "embedding_dim", None)
        and getattr(backbone, "num_groups", None) is None
    ),
    without=("pooled_dense",),
    names={"embeddings_projection": "embeddings_project"},
    tied={"generator_lm_head.weight": "embeddings.word_embeddings.weight"},
    dropped={**bert.DROPPED, "sequence_summary.": bert.DROPPED["classifier."]},
    frame=ELECTRA,
)
