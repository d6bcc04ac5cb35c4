"""Run by the environment with transformers and torch, which has neither Keras nor this package.

    python bart_worker.py FOLDER

Loads every BART in FOLDER/ours/, computes with the inputs in FOLDER/inputs.npz in float64, writes
the numbers to FOLDER/NAME.npz and the ids of FOLDER/texts.json to FOLDER/NAME.json, and writes each
model again to FOLDER/theirs/.
"""

import json
import pathlib
import sys

import bart_golden
import numpy as np


def main(folder):
    """Does what is said above."""
    import torch
    import transformers

    given = bart_golden.tensors_of(dict(np.load(folder / "inputs.npz")))
    texts = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    for source in sorted((folder / "ours").iterdir()):
        model, loading = transformers.BartForConditionalGeneration.from_pretrained(
            source, output_loading_info=True, attn_implementation="eager"
        )
        model.save_pretrained(folder / "theirs" / source.name)
        tokenizer = transformers.BartTokenizer.from_pretrained(source)
        tokenizer.save_pretrained(folder / "theirs" / source.name)
        ids = tokenizer(texts)["input_ids"]
        (folder / f"{source.name}.json").write_text(json.dumps(ids))
        model = model.eval().double()
        with torch.no_grad():
            found = model(**given)
        np.savez(
            folder / f"{source.name}.npz",
            encoder=found.encoder_last_hidden_state.numpy(),
            logits=found.logits.numpy(),
            missing=np.array(loading["missing_keys"], str),
            unexpected=np.array(loading["unexpected_keys"], str),
            mismatched=np.array(loading["mismatched_keys"], str),
        )


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
