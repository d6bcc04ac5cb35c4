"""Run by the environment with transformers and torch: makes the golden numbers of Transformer-XL.

    python transfo_xl_golden.py FILE.npz

Reads a text in consecutive segments with `TransfoXLModel`, each with the memory that the one before
left, and writes what goes into and comes out of the attention of each layer, in float64. The code
there has its frequencies in float32, and rounds the logits to float32 to mask them: here neither.
It also hands `type_as` a dtype by name, which torch refuses.
"""

import sys

import numpy as np
import torch
import transformers

MEMORY, SEGMENT, SEGMENTS, BATCH = 7, 5, 3, 2
config = transformers.TransfoXLConfig(
    vocab_size=29,
    cutoffs=[],
    div_val=1,
    d_model=12,
    d_embed=12,
    n_head=3,
    d_head=4,
    d_inner=9,
    n_layer=2,
    mem_len=MEMORY,
    clamp_len=-1,
    same_length=False,
    untie_r=True,
    pre_lnorm=False,
)
torch.manual_seed(0)
model = transformers.TransfoXLModel(config).eval().double()
for weight in model.parameters():
    weight.data = torch.randn(weight.shape).double() * 0.4
width = torch.arange(0.0, config.d_model, 2.0, dtype=torch.float64)
model.pos_emb.inv_freq = 1 / (10000 ** (width / config.d_model))
torch.Tensor.float = lambda tensor: tensor
type_as = torch.Tensor.type_as
torch.Tensor.type_as = lambda tensor, other=None, dtype=None: (
    type_as(tensor, other) if dtype is None else tensor.to(dtype)
)

found = {f"{name}_{layer}": [] for layer in range(config.n_layer) for name in ("in", "out")}


def keep(layer):
    """Returns a hook that keeps what goes into an attention and what comes out."""

    def hook(module, inputs, outputs):
        found[f"in_{layer}"].append(inputs[0])
        found[f"out_{layer}"].append(outputs[0])

    return hook


for layer, block in enumerate(model.layers):
    block.dec_attn.register_forward_hook(keep(layer))
token_ids = torch.randint(0, config.vocab_size, (BATCH, SEGMENT * SEGMENTS))
memory = None
with torch.no_grad():
    for ids in token_ids.split(SEGMENT, dim=1):
        memory = model(ids, mems=memory).mems
arrays = {name: torch.cat(parts).transpose(0, 1).numpy() for name, parts in found.items()}
for layer, block in enumerate(model.layers):
    for name, value in block.dec_attn.state_dict().items():
        arrays[f"weight/{layer}/{name}"] = value.numpy()
np.savez(
    sys.argv[1],
    token_ids=token_ids.numpy(),
    memory_length=MEMORY,
    segment_length=SEGMENT,
    epsilon=config.layer_norm_epsilon,
    **arrays,
)
