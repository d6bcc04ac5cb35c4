"""Run by the environment with transformers and torch: makes golden folders of BARTs.

    python bart_golden.py FOLDER VOCABULARY

Writes FOLDER/NAME/ as `save_pretrained` does, and FOLDER/NAME.npz: pairs of rows with padding, the
states of encoder and decoder behind each layer and the logits of the second row, in float64 on
weights that float32 holds too; and what greedy search and beam search make of sources, see
`written`. VOCABULARY is the folder of a byte-level vocabulary, for the model that has its size.
"""

import pathlib
import sys

import numpy as np


def sizes(layers, width, vocabulary, heads, inner, rows=15, **more):
    """Returns a configuration, of `layers` of the encoder and of the decoder."""
    both = {"attention_heads": heads, "ffn_dim": inner}
    return {
        **{f"{side}_{name}": x for side in ("encoder", "decoder") for name, x in both.items()},
        **dict(zip(("encoder_layers", "decoder_layers"), layers, strict=True)),
        "d_model": width,
        "vocab_size": vocabulary,
        "max_position_embeddings": rows,
        **more,
    }


# The configuration of each, by name.
CASES = {
    "small": sizes((1, 1), 12, 23, 3, 20),
    "deep": sizes((2, 3), 16, 29, 2, 9, scale_embedding=True, activation_function="gelu_new"),
    "text": sizes((2, 1), 12, 481, 3, 8, rows=24),
}
# Seed of the weights, such that sources matter and some texts end, scale of token vectors, and of
# that of the end token in addition.
DRAWN = {"small": (9, 0.4, 2.2), "deep": (28, 0.2, 2), "text": (2, 0.4, 2)}
TEXTS = ["The quick brown  fox.", "it's\n caf\u00e9", "the the the the"]
BEAMS = {"sum": 0.0, "root": 0.6, "mean": 1.0}


def model_of(more, seed, scale, of_end):
    """Returns a model in evaluation, with random weights that float32 holds too."""
    import torch
    import transformers

    config = transformers.BartConfig(**more, attn_implementation="eager")
    model = transformers.BartForConditionalGeneration(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator))
        model.model.shared.weight.mul_(scale)
        model.model.shared.weight[model.config.eos_token_id].mul_(of_end)
        for layer in model.model.decoder.layers:
            layer.encoder_attn.out_proj.weight.mul_(3)
    return model


def pairs_of(config, seed):
    """Returns sources, one padded on the left, and targets, as `input_ids` there."""
    random = np.random.default_rng(seed)
    ids = {
        "encoder": random.integers(3, config.vocab_size, (3, 13)),
        "decoder": random.integers(3, config.vocab_size, (3, 11)),
    }
    masks = {side: np.ones_like(value) for side, value in ids.items()}
    masks["encoder"][0, 9:] = 0
    masks["encoder"][2, :4] = 0
    masks["decoder"][1, 6:] = 0
    return {
        **{f"{side}_token_ids": np.where(masks[side], ids[side], 1) for side in ids},
        **{f"{side}_padding_mask": masks[side] for side in ids},
    }


def tensors_of(given):
    """Returns the inputs of a model there."""
    import torch

    names = {
        "encoder_token_ids": "input_ids",
        "encoder_padding_mask": "attention_mask",
        "decoder_token_ids": "decoder_input_ids",
        "decoder_padding_mask": "decoder_attention_mask",
    }
    return {names[name]: torch.tensor(value) for name, value in given.items() if name in names}


def written(model, seed, count=24):
    """Returns sources and what is written to them behind `</s><s>`, in rows of 14 tokens.

    `greedy` and `beams_<penalty>` are rows, `scores_<penalty>` their scores.
    """
    import torch

    random = np.random.default_rng(seed)
    length = np.arange(count) % 5 + 4
    mask = (np.arange(8) < length[:, None]).astype(int)
    ids = np.where(mask, random.integers(3, model.config.vocab_size, (count, 8)), 1)
    beginning = torch.tensor([[2, 0]]).repeat(count, 1)
    options = {
        "input_ids": torch.tensor(ids),
        "attention_mask": torch.tensor(mask),
        "decoder_input_ids": beginning,
        "max_length": 14,
        "forced_eos_token_id": None,
        "do_sample": False,
    }
    found = {"sources": ids, "source_mask": mask}
    found["greedy"] = model.generate(**options, num_beams=1).numpy()
    for name, penalty in BEAMS.items():
        done = model.generate(
            **options,
            num_beams=4,
            length_penalty=penalty,
            early_stopping="never",
            return_dict_in_generate=True,
            output_scores=True,
        )
        found[f"beams_{name}"] = done.sequences.numpy()
        found[f"scores_{name}"] = done.sequences_scores.numpy()
    return found


def text_of(model, vocabulary):
    """Returns texts, their ids, and what is written to them, as ids and as text."""
    import transformers

    tokenizer = transformers.BartTokenizer(
        str(vocabulary / "vocab.json"), str(vocabulary / "merges.txt")
    )
    rows = tokenizer(TEXTS, padding=True, return_tensors="pt")
    options = {"max_length": 20, "forced_bos_token_id": 0, "forced_eos_token_id": None}
    ids = model.generate(**rows, **options, num_beams=1, do_sample=False)
    found = tokenizer.batch_decode(
        ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return {
        "texts": np.array(TEXTS),
        "text_ids": rows["input_ids"].numpy(),
        "written": np.array(found),
    }


def main(folder, vocabulary):
    """Does what is said above."""
    import torch

    for name, more in CASES.items():
        model = model_of(more, *DRAWN[name])
        seed = DRAWN[name][0]
        model.save_pretrained(folder / name)
        (folder / name / "generation_config.json").unlink(missing_ok=True)
        model = model.double()
        given = pairs_of(model.config, seed)
        with torch.no_grad():
            found = model(**tensors_of(given), output_hidden_states=True)
        numbers = {
            **given,
            "encoder_states": torch.stack(found.encoder_hidden_states).numpy(),
            "decoder_states": torch.stack(found.decoder_hidden_states).numpy(),
            "logits": found.logits[1].numpy(),
        }
        more = text_of(model, vocabulary) if name == "text" else written(model, seed)
        np.savez_compressed(folder / f"{name}.npz", **numbers, **more)


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
