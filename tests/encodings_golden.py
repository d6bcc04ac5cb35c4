"""Run by an environment with torch, transformers, x-transformers and PoPE-pytorch: golden numbers.

    python encodings_golden.py FILE.npz

Position encodings since 2021 by released code, in float64 on random numbers. What that code
computes in float32, whatever it is given, is made float64 first.
"""

import sys
import types

import numpy as np
import torch
from PoPE_pytorch import PoPE, apply_pope_to_qk
from transformers import ModernBertConfig, PretrainedConfig, modeling_rope_utils
from transformers.models.modernbert import modeling_modernbert
from x_transformers.x_transformers import AlibiPositionalBias, DataDependentAlibi

HEADS, DIM, LENGTH, BATCH = 3, 8, 11, 2
# Settings of `ROPE_INIT_FUNCTIONS`: kind, theta, head, share that rotates, factor, length before.
SCALINGS = [
    ("default", 10000.0, 64, 1.0, 1.0, None),
    ("default", 160000.0, 64, 0.25, 1.0, None),
    ("linear", 10000.0, 64, 1.0, 4.0, None),
    ("linear", 500.0, 16, 0.5, 2.5, None),
    ("dynamic", 10000.0, 64, 1.0, 4.0, None),
    ("dynamic", 500.0, 16, 0.5, 2.5, None),
    ("yarn", 10000.0, 64, 1.0, 16.0, 4096),
    ("yarn", 10000.0, 64, 1.0, 4.0, 128),
    ("yarn", 500.0, 32, 0.5, 2.5, 100),
    ("yarn", 10000.0, 8, 1.0, 8.0, 512),
]


class Float64Torch(types.ModuleType):
    """The module torch, where float32 is float64."""

    float = float32 = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


def randomize(module):
    """Gives all weights of a module random values of float64."""
    module.double()
    for weight in module.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    return module


def alibi():
    """The bias for some numbers of heads."""
    for heads in (3, 8, 12):
        yield f"alibi/{heads}", AlibiPositionalBias(heads).double()(LENGTH, LENGTH)


def data_dependent_alibi():
    """Hidden states, the gates' weights, and the bias."""
    x = torch.randn(BATCH, LENGTH, HEADS * DIM)
    yield "data_dependent_alibi/hidden_states", x
    for causal in (True, False):
        module = randomize(DataDependentAlibi(HEADS * DIM, HEADS, causal=causal))
        name = f"data_dependent_alibi/{'causal' if causal else 'both'}"
        linear = module.to_forget_gates[0]
        yield f"{name}/kernel", linear.weight.T
        yield f"{name}/bias", linear.bias
        yield f"{name}/logits", module(x)


def pope():
    """Queries and keys, the learned phases, and their products."""
    query, key = torch.randn(2, BATCH, HEADS, LENGTH, DIM)
    rates = 10000.0 ** -(torch.arange(DIM).double() / DIM)
    module = PoPE(DIM, heads=HEADS, inv_freqs=rates).double()
    torch.nn.init.uniform_(module.bias, -6.0, -0.1)  # which it does not cut
    turned = apply_pope_to_qk(module(LENGTH), query, key)
    yield "pope/query", query
    yield "pope/key", key
    yield "pope/phase", module.bias
    yield "pope/products", torch.einsum("bhid,bhjd->bhij", *turned)


def rope():
    """Angles per position, and what the waves are multiplied with."""
    modeling_rope_utils.torch = Float64Torch("torch")
    for index, (kind, theta, head, partial, factor, before) in enumerate(SCALINGS):
        config = PretrainedConfig()
        config.rope_theta, config.head_dim, config.partial_rotary_factor = theta, head, partial
        config.hidden_size, config.num_attention_heads = HEADS * head, HEADS
        config.max_position_embeddings = 100
        config.rope_scaling = {"factor": factor, "original_max_position_embeddings": before}
        if kind == "dynamic":  # by the length, here `factor` times the one of training
            config.rope_scaling["factor"] = 1.0
        make = {
            "default": modeling_rope_utils._compute_default_rope_parameters,
            **modeling_rope_utils.ROPE_INIT_FUNCTIONS,
        }[kind]
        rates, multiplier = make(config, "cpu", seq_len=int(100 * factor))
        yield f"rope/{index}/rates", rates.double()
        yield f"rope/{index}/multiplier", torch.tensor(multiplier, dtype=torch.float64)
    yield "rope/settings", np.array([repr(settings) for settings in SCALINGS])
    modeling_rope_utils.torch = torch


def modernbert():
    """Attention of four layers in a row, of which 0 and 3 see all and have the global theta."""
    config = ModernBertConfig(
        hidden_size=HEADS * DIM,
        num_attention_heads=HEADS,
        num_hidden_layers=4,
        local_attention=6,
        global_attn_every_n_layers=3,
        global_rope_theta=700.0,
        local_rope_theta=30.0,
        attention_bias=True,
        attn_implementation="eager",
    )
    x = torch.randn(BATCH, LENGTH, HEADS * DIM)
    position = torch.arange(LENGTH)
    far = (position[:, None] - position).abs() > config.local_attention // 2
    local = torch.zeros(1, 1, LENGTH, LENGTH).masked_fill(far, -torch.inf)
    modeling_modernbert.nn.functional.softmax = softmax_in_float64
    yield "modernbert/hidden_states", x
    for layer in range(4):
        module = randomize(modeling_modernbert.ModernBertAttention(config, layer)).eval()
        rotary = module.rotary_emb
        exact = module.rotary_emb.config.rope_theta ** -(torch.arange(0, DIM, 2).double() / DIM)
        torch.testing.assert_close(rotary.inv_freq.float(), exact.float(), rtol=1e-6, atol=0)
        angles = torch.cat([position[:, None] * exact] * 2, dim=-1)[None]
        rotary.forward = lambda x, position_ids, angles=angles: (angles.cos(), angles.sin())
        output, scores = module(
            x,
            output_attentions=True,
            attention_mask=torch.zeros(1, 1, LENGTH, LENGTH),
            sliding_window_mask=local,
            position_ids=position[None],
        )
        for name in ("Wqkv", "Wo"):
            yield f"modernbert/{layer}/{name}/kernel", getattr(module, name).weight.T
            yield f"modernbert/{layer}/{name}/bias", getattr(module, name).bias
        yield f"modernbert/{layer}/scores", scores
        yield f"modernbert/{layer}/output", output


def softmax_in_float64(x, dim, dtype=None):
    """Softmax in the type that it is given."""
    return torch.softmax(x, dim)


def main(path):
    """Writes the file."""
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    found = {}
    with torch.no_grad():
        for make in (alibi, data_dependent_alibi, pope, rope, modernbert):
            for name, values in make():
                found[name] = values if isinstance(values, np.ndarray) else values.numpy()
                assert found[name].dtype.kind == "U" or found[name].dtype == np.float64, name
    np.savez_compressed(path, **found)


if __name__ == "__main__":
    main(sys.argv[1])
