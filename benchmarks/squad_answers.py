"""SQuAD's answers from text to labels and back: how many survive, and how fast.

    python -m benchmarks.squad_answers --squad dev-v1.1.json --vocabulary vocab.txt
    python -m benchmarks.squad_answers --squad dev-v1.1.json --train-sentencepiece 8000

Cuts the questions into windows, gives each label the logit 1 and all else 0, turns these logits
back into answers, and compares with the file: after the official script's normalisation (`exact
match`, in percent) and to the letter (`verbatim`). Lists each answer that is not recovered. The
dev set with BERT's vocabulary takes some ten seconds.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import argparse
import json
import pathlib
import re
import shlex
import string
import sys
import time

import numpy as np

from benchmarks._machine import machine, source
from keras_tupe.data import train_sentencepiece_bpe
from keras_tupe.data.tasks.squad import read_squad, squad_predictions, squad_windows
from keras_tupe.tokenizers import SentencePieceBpe, WordPiece
from training.command.report_files import replaced_text

_BERT_ANSWER_LENGTH = 30


def main(arguments=None):
    """Runs the command line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--squad", required=True, help="a JSON file of SQuAD v1.1")
    vocabulary = parser.add_mutually_exclusive_group(required=True)
    vocabulary.add_argument("--vocabulary", help="WordPiece .txt, or a SentencePiece model")
    vocabulary.add_argument(
        "--train-sentencepiece", type=int, metavar="PIECES", help="train one on the contexts"
    )
    parser.add_argument("--length", type=int, default=384, help="tokens per window")
    parser.add_argument("--doc-stride", type=int, default=128, help="tokens between windows")
    parser.add_argument("--out", type=pathlib.Path, help="a JSON file for the record")
    settings = parser.parse_args(arguments)
    skipped = []
    try:
        questions = read_squad(settings.squad, skipped=skipped)
        measured = _measure(questions, _tokenizer(settings, questions), settings)
    except (OSError, TypeError, ValueError) as error:
        sys.exit(f"squad_answers: {error}")
    record = {
        "command": shlex.join(["python", "-m", "benchmarks.squad_answers", *arguments]),
        "source": source(),
        "machine": machine(),
        "skipped": skipped,
        **measured,
    }
    text = json.dumps(record, indent=2)
    print(text)
    if settings.out:
        replaced_text(settings.out, f"{text}\n")


def _tokenizer(settings, questions):
    if settings.vocabulary is None:
        contexts = list(dict.fromkeys(question.context for question in questions))
        return SentencePieceBpe(train_sentencepiece_bpe(contexts, settings.train_sentencepiece))
    is_wordpiece = settings.vocabulary.endswith(".txt")
    return (WordPiece if is_wordpiece else SentencePieceBpe)(settings.vocabulary)


def _measure(questions, tokenizer, settings):
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
