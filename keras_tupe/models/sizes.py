"""Named sizes of the encoder."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Size:
    """Sizes of a Transformer encoder, unpacked into `TupeBackbone` with `dataclasses.asdict`.

    Attributes:
        num_layers: number of encoder blocks.
        num_heads: number of attention heads.
        hidden_dim: width of the hidden states.
        intermediate_dim: width of the feed-forward networks.
    """

    num_layers: int
    num_heads: int
    hidden_dim: int
    intermediate_dim: int


# Sizes of the encoder by name; `base` and `large` are those of BERT-base and BERT-large,
# `electra_small` is that of ELECTRA-small, whose embeddings are narrower (`embedding_dim=128`), and
# `transformer_base` is that of the original Transformer's base model, on each side.
SIZES = {
    "tiny": Size(num_layers=2, num_heads=4, hidden_dim=128, intermediate_dim=512),
    "mini": Size(num_layers=4, num_heads=4, hidden_dim=256, intermediate_dim=1024),
    "small": Size(num_layers=4, num_heads=8, hidden_dim=512, intermediate_dim=2048),
    "electra_small": Size(num_layers=12, num_heads=4, hidden_dim=256, intermediate_dim=1024),
    "transformer_base": Size(num_layers=6, num_heads=8, hidden_dim=512, intermediate_dim=2048),
    "base": Size(num_layers=12, num_heads=12, hidden_dim=768, intermediate_dim=3072),
    "large": Size(num_layers=24, num_heads=16, hidden_dim=1024, intermediate_dim=4096),
}
