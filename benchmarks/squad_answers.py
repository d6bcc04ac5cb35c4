"""SQuAD's answers from text to labels and back: how many survive, and how fast.

    python -m benchmarks.squad_answers --squad dev-v1.1.json --vocabulary vocab.txt
    python -m benchmarks.squad_answers --squad dev-v1.1.json --train-sentencepiece 8000

Cuts the questions into windows, gives each label the logit 1 and all else 0, turns these logits
back into answers, and compares with the file: after the official script's normalisation (`exact
match`, in percent) and to the letter (`verbatim`). Lists each answer that is not recovered. The
dev set with BERT's vocabulary takes some ten seconds.
"""

import dataclasses
import re
import string
import time

import numpy as np

from training.command.settings import COUNT, parse, setting, wrong_fields
from training.command.shell import sentences

_BERT_ANSWER_LENGTH = 30


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the benchmark."""

    squad: str | None = setting(None, "A JSON file of SQuAD v1.1.")
    vocabulary: str | None = setting(None, "WordPiece .txt, or a SentencePiece model.")
    train_sentencepiece: int | None = setting(
        None, "Pieces of one to train on the contexts.", rule=COUNT
    )
    length: int = setting(384, "Tokens per window.", rule=COUNT)
    doc_stride: int = setting(128, "Tokens between windows.", rule=COUNT)
    out: str | None = setting(None, "A JSON file for the record.")

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        found = [*wrong_fields(self).values()]
        if self.squad is None:
            found.append("--squad must name a JSON file of SQuAD v1.1. Received: none")
        if (self.vocabulary is None) == (self.train_sentencepiece is None):
            given = "none" if self.vocabulary is None else "both"
            found.append(
                f"One of --vocabulary and --train-sentencepiece must be given. Received: {given}"
            )
        return found


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "squad_answers")
    from benchmarks.harness import provenance, report
    from keras_tupe.data.tasks.squad import read_squad

    skipped = []
    with sentences("squad_answers", "Nothing was written."):
        questions = read_squad(settings.squad, skipped=skipped)
        measured = _measure(questions, _tokenizer(settings, questions), settings)
    record = {**provenance.origin("squad_answers", arguments), "skipped": skipped, **measured}
    report.print_json(record, settings.out)


def _tokenizer(settings, questions):
    from keras_tupe.data import train_sentencepiece_bpe
    from keras_tupe.tokenizers import SentencePieceBpe, WordPiece

    if settings.vocabulary is None:
        contexts = list(dict.fromkeys(question.context for question in questions))
        return SentencePieceBpe(train_sentencepiece_bpe(contexts, settings.train_sentencepiece))
    is_wordpiece = settings.vocabulary.endswith(".txt")
    return (WordPiece if is_wordpiece else SentencePieceBpe)(settings.vocabulary)


def _measure(questions, tokenizer, settings):
    from keras_tupe.data.tasks.squad import squad_predictions, squad_windows

    start = time.perf_counter()
    windows = squad_windows(questions, tokenizer, settings.length, doc_stride=settings.doc_stride)
    window_seconds = time.perf_counter() - start
    logits = [
        np.equal(np.arange(settings.length), positions[:, np.newaxis]).astype("float32")
        for positions in (windows.start_positions, windows.end_positions)
    ]
    start = time.perf_counter()
    predictions = squad_predictions(windows, *logits, max_answer_length=settings.length)
    prediction_seconds = time.perf_counter() - start
    sizes = windows.end_positions - windows.start_positions + 1
    exceptions, num_verbatim = [], 0
    for question in questions:
        prediction, texts = predictions[question.id], [text for text, _ in question.answers]
        num_verbatim += prediction in texts
        if _normalized(prediction) not in map(_normalized, texts):
            exceptions.append({"id": question.id, "answers": texts, "prediction": prediction})
    return {
        "questions": len(questions),
        "windows": len(windows.token_ids),
        "windows_per_second": round(len(windows.token_ids) / window_seconds),
        "predictions_per_second": round(len(questions) / prediction_seconds),
        "exact_match": 100 * (1 - len(exceptions) / len(questions)),
        "verbatim": 100 * num_verbatim / len(questions),
        "inside_a_token": len(windows.inexact_ids),
        "without_label": len(windows.unlabelled_ids),
        f"longer_than_{_BERT_ANSWER_LENGTH}_tokens": len(
            set(windows.question_index[sizes > _BERT_ANSWER_LENGTH].tolist())
        ),
        "not_recovered": exceptions,
    }


def _normalized(answer):
    """The official script's normal form: no case, punctuation, articles and extra spaces."""
    letters = "".join(c for c in answer.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", letters).split())


if __name__ == "__main__":
    main()
