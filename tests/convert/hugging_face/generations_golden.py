"""Run by an environment with transformers 4 or 5, sentencepiece and protobuf: folders of each.

    python generations_golden.py FOLDER

Writes FOLDER/MAJOR/KIND/ as that version's fast tokenizer saves it, without the files of the older
generation, from the golden vocabularies; and FOLDER/MAJOR/ids.json, the ids that it gives.
"""

import json
import pathlib
import sys

import transformers

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"
SOURCES = {
    "Albert": "vocabularies/albert",
    "Deberta": "vocabularies/deberta",
    "Electra": "vocabularies/electra",
    "GPT2": "byte_pairs/gpt2",
    "MPNet": "vocabularies/mpnet",
    "Roberta": "byte_pairs/roberta",
}

if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1]) / transformers.__version__.split(".")[0]
    texts = json.loads((GOLDEN / "vocabularies" / "ids.json").read_text("utf-8"))["texts"]
    ids = {"texts": texts, "transformers": transformers.__version__}
    for name, source in SOURCES.items():
        kind = getattr(transformers, f"{name}TokenizerFast").from_pretrained(GOLDEN / source)
        ids[name] = kind(texts, add_special_tokens=False)["input_ids"]
        place = folder / name
        kind.save_pretrained(place)
        for file in place.iterdir():
            if file.name not in ("tokenizer.json", "tokenizer_config.json"):
                file.unlink()
            else:
                content = json.loads(file.read_text("utf-8"))
                file.write_text(json.dumps(content) + "\n", encoding="utf-8")
    (folder / "ids.json").write_text(json.dumps(ids) + "\n", encoding="utf-8")
