"""Run by the environment with transformers and torch, which has neither Keras nor this package.

    python peer_worker.py FOLDER

Reads the inputs in FOLDER/inputs.npz and every BERT in FOLDER/ours/, writes what transformers
computes to FOLDER/NAME.npz, and writes each BERT again, in parts, to FOLDER/theirs/ in both of its
formats.
"""

import pathlib
import sys

import numpy as np
import torch
import transformers

folder = pathlib.Path(sys.argv[1])
inputs = {name: torch.tensor(value) for name, value in np.load(folder / "inputs.npz").items()}
for source in sorted((folder / "ours").iterdir()):
    model, loading = transformers.BertForMaskedLM.from_pretrained(
        source, output_loading_info=True, attn_implementation="eager"
    )
    encoder = transformers.BertModel.from_pretrained(source, attn_implementation="eager")
    with torch.no_grad():
        logits = model.eval()(**inputs).logits
        pooled = encoder.eval()(**inputs).pooler_output
    tokenizer = transformers.BertTokenizer.from_pretrained(source)
    np.savez(
        folder / f"{source.name}.npz",
        logits=logits,
        pooled=pooled,
        tokens=tokenizer("the cats sat on the Mat")["input_ids"],
        missing=np.array(loading["missing_keys"], str),
        unexpected=np.array(loading["unexpected_keys"], str),
        mismatched=np.array(loading["mismatched_keys"], str),
    )
    for kind, is_safe in (("safetensors", True), ("torch", False)):
        model.save_pretrained(
            folder / "theirs" / kind / source.name, safe_serialization=is_safe, max_shard_size="4KB"
        )
