"""Run by an environment with transformers, rjieba, sentencepiece and protobuf: golden vocabularies.

    python vocabularies_golden.py FOLDER

Writes FOLDER/KIND/ as `save_pretrained` does, with a small vocabulary, and FOLDER/ids.json: the
texts, their ids without special tokens by the fast tokenizer of each kind (where the slow one has
others they are printed), and the ids of a pair and of a text with a mask.
"""

import io
import json
import pathlib
import sys

SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "A cat sat on the mat, and the dogs ran to the park in 1,905!",
    "She sells sea shells by the sea shore; he reads old books of 25,190 pages.",
    "How many words does a small vocabulary need? Not many, or 19, or 9,9.",
    "Positions of words matter: ``dog bites man'' is not \"man bites dog\".",
    "Reading and writing texts, jumping and running, walking and talking.",
]
TEXTS = [
    *SENTENCES,
    "In 1,905 they'd 9,9 caf\u00e9s, na\u00efve \u00c5ngstr\u00f6ms",
    "  two   spaces and  no tab",
    "unwalkable THINGS (of all kinds) - 'quoted' and `ticked`",
    "\u65e5\u672c and \U0001f600 emoji",
    "Is <b> text? Is it </b",
]
PAIR = ("The cat sat.", "A dog ran!")


def vocabularies(folder):
    """Writes the vocabularies; returns the slow and the fast tokenizer of each kind."""
    import sentencepiece
    import tokenizers
    import transformers

    bert = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trained = tokenizers.BertWordPieceTokenizer(lowercase=True)
    trained.train_from_iterator(SENTENCES, vocab_size=160, min_frequency=1, special_tokens=bert)
    pieces = sorted(trained.get_vocab(), key=trained.get_vocab().get)
    lines = {"bert": pieces, "mpnet": ["<s>", "<pad>", "</s>", "<unk>", *pieces, "<mask>"]}
    for name, content in lines.items():
        (folder / f"{name}.txt").write_text("".join(f"{p}\n" for p in content), encoding="utf-8")
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(SENTENCES, vocab_size=320, min_frequency=1, special_tokens=bert)
    trained.save_model(str(folder))
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(sentence.lower() for sentence in SENTENCES),
        model_writer=model,
        model_type="unigram",
        vocab_size=88,
        normalization_rule_name="identity",
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        bos_piece="[CLS]",
        eos_piece="[SEP]",
        control_symbols=["[MASK]"],
    )
    (folder / "spiece.model").write_bytes(model.getvalue())
    files = {
        "Albert": ["spiece.model"],
        "Deberta": ["vocab.json", "merges.txt"],
        "Electra": ["bert.txt"],
        "MPNet": ["mpnet.txt"],
        "RoFormer": ["bert.txt"],
    }
    for name, given in files.items():
        paths = [str(folder / file) for file in given]
        classes = (f"{name}Tokenizer", f"{name}TokenizerFast")
        yield name.lower(), [getattr(transformers, cls)(*paths) for cls in classes]
    for file in {file for given in files.values() for file in given}:
        (folder / file).unlink()


def main(folder):
    """Does what is said above."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {"texts": TEXTS, "pair": PAIR}
    for kind, (slow, fast) in vocabularies(folder):
        masked = f"the cat   {slow.mask_token} on"
        ids = [
            {
                "ids": tokenizer(TEXTS, add_special_tokens=False)["input_ids"],
                "pair": tokenizer(*PAIR)["input_ids"],
                "mask": tokenizer(masked, add_special_tokens=False)["input_ids"],
            }
            for tokenizer in (slow, fast)
        ]
        for texts in zip(TEXTS, ids[0]["ids"], ids[1]["ids"], strict=True):
            if texts[1] != texts[2]:
                print(kind, *texts)
        found[kind] = {**ids[1], "size": len(slow)}
        slow.save_pretrained(folder / kind)
    (folder / "ids.json").write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
