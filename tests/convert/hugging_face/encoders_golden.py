"""Run by the environment with transformers and torch: makes golden folders of encoders.

    python encoders_golden.py FOLDER [KIND ...]

Writes FOLDER/NAME/ as `save_pretrained` does, and FOLDER/NAME.npz: inputs with padding (and
segments), the hidden states behind each layer (of long rows the last) and the logits of the third
row (of a BERT for pre-training also those of the pairs), in float64 on weights that float32 holds
too. What the code there computes in float32, whatever the type of the model, is made float64 first;
`as_released_` are the hidden states behind the last layer without that.
"""

import pathlib
import sys

import numpy as np

SIZES = {
    "small": {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 2},
    "wide": {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1},
}
COMMON = {
    "small": {"vocab_size": 23, "intermediate_size": 20, "layer_norm_eps": 1e-5},
    "wide": {"vocab_size": 19, "intermediate_size": 9, "layer_norm_eps": 1e-12},
}
RELATIVE = {"relative_attention": True, "position_biased_input": False}
CLIPPED = {"max_relative_positions": 6, **RELATIVE}
NEW, NARROW = {"hidden_act": "gelu_new"}, {"embedding_size": 7}
# By kind: the model's class, and by size the rows of its position table and what it has more.
KINDS = {
    "roberta": (
        "RobertaForMaskedLM",
        {
            "small": (17, {"type_vocab_size": 1}),
            "wide": (40, {"type_vocab_size": 2, "pad_token_id": 3, **NEW}),
        },
    ),
    "mpnet": ("MPNetForMaskedLM", {"small": (17, {}), "wide": (203, NEW)}),
    "deberta": (
        "DebertaForMaskedLM",
        {
            "small": (15, {"type_vocab_size": 0, "pos_att_type": "c2p|p2c", **RELATIVE}),
            "wide": (40, {"type_vocab_size": 2, "pos_att_type": ["p2c", "c2p"], **CLIPPED, **NEW}),
        },
    ),
    "roformer": ("RoFormerForMaskedLM", {"small": (15, NARROW), "wide": (40, NEW)}),
    "electra": (
        "ElectraForMaskedLM",
        {"small": (15, NARROW), "wide": (40, {"embedding_size": 16, **NEW})},
    ),
    "electra_discriminator": ("ElectraForPreTraining", {"small": (15, NARROW)}),
    "bert_pair": ("BertForPreTraining", {"small": (15, {})}),
    "megatron_bert": ("MegatronBertForMaskedLM", {"small": (15, {})}),  # in a folder of its own
    "albert": (
        "AlbertForMaskedLM",
        {
            "small": (15, {"num_hidden_layers": 6, "num_hidden_groups": 3, **NARROW}),
            "wide": (40, {"embedding_size": 16, "num_hidden_layers": 2, "hidden_act": "gelu"}),
        },
    ),
}
LENGTHS = {"small": (13, 1), "wide": (31,)}
LONG = {"mpnet_wide": (201,)}  # farther than the last bucket


def model_of(cls, config, seed):
    """Returns a model in float64 with random weights that float32 holds too."""
    import torch
    import transformers

    model = getattr(transformers, cls)(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.copy_(0.4 * torch.randn(weight.shape, generator=generator))
    return model


def inputs_of(config, length, seed):
    """Returns ids, a padding mask and segments of three rows, the first two padded."""
    random = np.random.default_rng(seed)
    pad = config.pad_token_id
    ids = random.integers(pad + 1, config.vocab_size, (3, length))
    mask = np.ones_like(ids)
    mask[0, -(length // 3) or length :] = 0
    mask[1, 1:] = 0
    found = {"token_ids": np.where(mask, ids, pad), "padding_mask": mask}
    if getattr(config, "type_vocab_size", 0) > 1:
        found["segment_ids"] = random.integers(0, config.type_vocab_size, (3, length)) * mask
    return found


def numbers(model, given):
    """Returns the hidden states (layers + 1, batch, n, D) and the outputs of the heads."""
    import torch

    names = {"token_ids": "input_ids", "padding_mask": "attention_mask"}
    names["segment_ids"] = "token_type_ids"
    tensors = {names[name]: torch.tensor(value) for name, value in given.items()}
    with torch.no_grad():
        found = model(**tensors, output_hidden_states=True)
    states = torch.stack(found.hidden_states).numpy()
    if "prediction_logits" in found:
        pair = {"pair_logits": found.seq_relationship_logits.numpy()}
        return states, found.prediction_logits.numpy(), pair
    return states, found.logits.numpy(), {}


def made_float64(model):
    """Makes float64 what the code of a model computes in float32."""
    import torch
    from transformers.models.deberta import modeling_deberta

    modeling_deberta.scaled_size_sqrt = lambda layer, factor: torch.sqrt(
        torch.tensor(layer.size(-1) * factor, dtype=torch.float64)
    )
    for module in model.modules():
        if isinstance(module, modeling_deberta.DebertaLayerNorm):
            shape, epsilon = module.weight.shape, module.variance_epsilon
            module.forward = lambda x, module=module, shape=shape, epsilon=epsilon: (
                torch.nn.functional.layer_norm(x, shape, module.weight, module.bias, epsilon)
            )
    if model.config.model_type == "roformer":
        waves = model.roformer.encoder.embed_positions.weight
        length, size = waves.shape
        angles = np.arange(length)[:, None] / 10000 ** (2 * np.arange(size // 2) / size)
        found = torch.tensor(np.concatenate([np.sin(angles), np.cos(angles)], axis=1))
        waves.data = found


IN_FLOAT32 = ("deberta", "roformer")


def main(folder, kinds):
    """Does what is said above."""
    import transformers

    for kind in kinds or KINDS:
        cls, configs = KINDS[kind]
        for size, (rows, more) in configs.items():
            name, rows = f"{kind}_{size}", {"max_position_embeddings": rows}
            config = getattr(transformers, cls).config_class(
                **{**SIZES[size], **COMMON[size], **rows, **more}, attn_implementation="eager"
            )
            model = model_of(cls, config, seed=len(name))
            model.save_pretrained(folder / name)
            model = model.double()
            found = {}
            if kind in IN_FLOAT32:
                for length in LENGTHS[size]:
                    given = inputs_of(config, length, seed=length)
                    found[f"as_released_{length}"] = numbers(model, given)[0][-1]
                made_float64(model)
            for length in LONG.get(name, LENGTHS[size]):
                given = inputs_of(config, length, seed=length)
                found |= {f"{key}_{length}": value for key, value in given.items()}
                states, logits, more = numbers(model, given)
                found |= {f"{key}_{length}": value for key, value in more.items()}
                found[f"hidden_states_{length}"] = states if length < 100 else states[-1:]
                found[f"logits_{length}"] = logits[2, :17]
            np.savez_compressed(folder / f"{name}.npz", **found)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2:])
