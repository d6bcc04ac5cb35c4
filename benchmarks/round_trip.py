"""Real sentences through the tokenizer of a prepared folder and back, here and in a SavedModel.

    python -m benchmarks.round_trip --data rows --input corpus.txt.xz

Takes `--sentences` sentences as preparation sees them and counts: those that do not come back from
`detokenize` (SentencePiece: letter for letter, but for its normalisation, NFKC and case-folding;
WordPiece: but for case, accents and white space, sentences with [UNK] apart), the [UNK]s, and those
whose ids differ in a SavedModel of the same tokenizer that another process loads. Prints JSON, and
writes it to `--out` if that is given.
"""

import dataclasses
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unicodedata

import numpy as np

from training.command.settings import COUNT, parse, setting, wrong_fields

_PER_CALL = 4096
# Unicode's Default_Ignorable_Code_Point, which NFKC_Casefold removes, among them the joiners
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_SERVE = """
import sys
import numpy as np
import tensorflow as tf
import tensorflow_text

model = tf.saved_model.load(sys.argv[1])
sentences = np.load(sys.argv[2])["sentences"]
ids, sizes = [], []
for start in range(0, len(sentences), 4096):
    answer = model.tokenize(tf.constant(sentences[start : start + 4096].tolist()))
    ids.append(answer["ids"].numpy())
    sizes.append(answer["sizes"].numpy())
np.savez(sys.argv[3], ids=np.concatenate(ids), sizes=np.concatenate(sizes))
"""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the benchmark."""

    data: str | None = setting(None, "Folder that training.prepare made.")
    input: str | None = setting(None, "Text, as for training.prepare.")
    sentences: int = setting(100_000, "How many.", rule=COUNT)
    out: str | None = setting(None, "JSON file to write.")

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        found = [*wrong_fields(self).values()]
        if self.data is None:
            found.append("--data must name a folder that training.prepare made. Received: none")
        if self.input is None:
            found.append("--input must name a text, as for training.prepare. Received: none")
        return found


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "round_trip")
    from benchmarks.harness import provenance, report
    from keras_tupe.tokenizers import SentencePieceBpe, WordPiece

    folder = pathlib.Path(settings.data)
    vocabulary = json.loads((folder / "preparation.json").read_text("utf-8"))["vocabulary"]
    kinds = {"wordpiece": WordPiece, "sentencepiece": SentencePieceBpe}
    path = folder / vocabulary["file"]
    tokenizer = kinds[vocabulary["kind"]](path, lowercase=vocabulary["lowercase"])
    if not vocabulary["lowercase"]:
        sys.exit("round_trip: the expectations are written for lower-cased vocabularies")
    sentences = sentences_of(settings.input, settings.sentences)
    ids, sizes = tokenize(tokenizer, sentences)
    served_ids, served_sizes = serve(tokenizer, sentences)
    record = {
        **provenance.origin("round_trip", arguments),
        "vocabulary": {key: vocabulary[key] for key in ("kind", "size", "sha256")},
        **compare(tokenizer, vocabulary["kind"], sentences, ids, sizes),
        "ids_equal_in_saved_model": bool(
            np.array_equal(ids, served_ids) and np.array_equal(sizes, served_sizes)
        ),
    }
    report.print_json(record, settings.out)


def sentences_of(inputs, number):
    """The first `number` sentences of the inputs, cleaned and split as in preparation."""
    from keras_tupe.data import clean_text, find_sources, read_source, split_sentences

    documents = (document for file in find_sources([inputs]) for document in read_source(file))
    texts = (clean_text(document.text) for document in documents if not document.problem)
    sentences = (sentence for text in texts for sentence in split_sentences(text))
    return list(itertools.islice(sentences, number))


def tokenize(tokenizer, sentences):
    """Ids end to end, and their number per sentence."""
    ids, sizes = [], []
    for start in range(0, len(sentences), _PER_CALL):
        ragged = tokenizer.tokenize(sentences[start : start + _PER_CALL])
        ids.append(ragged.flat_values.numpy())
        sizes.append(ragged.row_lengths().numpy())
    return np.concatenate(ids), np.concatenate(sizes)


def serve(tokenizer, sentences):
    """The same from a SavedModel, in another process."""
    import tensorflow as tf

    module = tf.Module()
    module.tokenizer = tokenizer

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def graph(strings):
        ragged = tokenizer.tokenize(strings)
        return {"ids": ragged.flat_values, "sizes": ragged.row_lengths()}

    module.tokenize = graph
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, f"{folder}/model")
        encoded = np.array([sentence.encode("utf-8") for sentence in sentences], object)
        np.savez(f"{folder}/sentences.npz", sentences=encoded.astype("S"))
        arguments = [f"{folder}/model", f"{folder}/sentences.npz", f"{folder}/answer.npz"]
        subprocess.run([sys.executable, "-c", _SERVE, *arguments], check=True)
        with np.load(f"{folder}/answer.npz") as answer:
            return answer["ids"], answer["sizes"]


def case_folded(sentence):
    """Unicode's NFKC_Casefold, written without the tokenizer."""
    folded = unicodedata.normalize("NFKC", sentence).casefold()
    return _IGNORABLE.sub("", unicodedata.normalize("NFKC", folded))


def compare(tokenizer, kind, sentences, ids, sizes):
    """Counts of sentences that differ, with the first few of them."""
    import tensorflow as tf
    import tokenizers

    starts = np.cumsum(sizes) - sizes
    rows = tf.RaggedTensor.from_row_lengths(ids, sizes)
    back = []
    for start in range(0, len(sentences), _PER_CALL):
        texts = tokenizer.detokenize(rows[start : start + _PER_CALL]).numpy()
        back.extend(text.decode("utf-8") for text in texts)
    normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    unknown = ids == tokenizer.unknown_id
    has_unknown = np.add.reduceat(unknown, starts) > 0 if len(ids) else np.zeros(0, bool)
    different = []
    for sentence, text, skipped in zip(sentences, back, has_unknown, strict=True):
        if kind == "sentencepiece":
            wanted, got = " ".join(case_folded(sentence).split()), text
        else:
            wanted = "".join(normalizer.normalize_str(case_folded(sentence)).split())
            got = "".join(text.split())
        if wanted != got and not (skipped and kind == "wordpiece"):
            different.append([wanted, got])
    return {
        "sentences": len(sentences),
        "pieces": len(ids),
        "unknown_pieces": int(unknown.sum()),
        "sentences_with_unknown_pieces": int(has_unknown.sum()),
        "sentences_that_do_not_come_back": len(different),
        "examples": different[:10],
    }


if __name__ == "__main__":
    main()
