"""Run by the environment with transformers and torch, which has neither Keras nor this package.

    python patterns_worker.py FOLDER

Loads every model in FOLDER/ours/, computes with the inputs in FOLDER/inputs.npz, writes the numbers
to FOLDER/NAME.npz, and writes each model again to FOLDER/theirs/.
"""

import json
import pathlib
import sys

import numpy as np


def main(folder):
    """Does what is said above."""
    import torch
    import transformers

    classes = {
        "gpt2": (transformers.GPT2LMHeadModel, transformers.GPT2Tokenizer),
        "longformer": (transformers.LongformerForMaskedLM, transformers.LongformerTokenizer),
    }
    given = {name: torch.tensor(value) for name, value in np.load(folder / "inputs.npz").items()}
    texts = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    for source in sorted((folder / "ours").iterdir()):
        config = json.loads((source / "config.json").read_text())
        kind = config["model_type"]
        named = getattr(transformers, config["architectures"][0])
        cls, tokenizer_cls = classes.get(kind, (named, None))
        model, loading = cls.from_pretrained(source, output_loading_info=True)
        inputs = {name: given[name] for name in ("input_ids", "attention_mask")}
        if kind == "longformer":
            inputs["global_attention_mask"] = given["global_attention_mask"]
        with torch.no_grad():
            logits = model.eval()(**inputs).logits[:, : given["input_ids"].shape[1]]
        tokenizer = tokenizer_cls.from_pretrained(source) if texts else None
        ids = tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else [[]]
        np.savez(
            folder / f"{source.name}.npz",
            logits=logits,
            tokens=np.concatenate(ids),
            missing=np.array(loading["missing_keys"], str),
            unexpected=np.array(loading["unexpected_keys"], str),
            mismatched=np.array(loading["mismatched_keys"], str),
        )
        model.save_pretrained(folder / "theirs" / source.name)
        if texts:
            tokenizer.save_pretrained(folder / "theirs" / source.name)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
