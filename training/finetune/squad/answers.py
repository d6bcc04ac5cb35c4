"""Scores of answers: of all, by position of the answer, by length of the passage."""

import math

import numpy as np

from keras_tupe.data import squad_predictions
from keras_tupe.metrics import mean_interval, squad_scores, wilson_interval

# First tokens of the groups; the last group is open.
EDGES = (0, 32, 64, 96, 128, 192, 256, 384, 512)


def answer_positions(windows):
    """Returns the number of the answer's first token in its passage, for each question.

    Where there are several gold answers, it is that of the labels, see `squad_windows`; -1 where no
    window holds the whole answer.
    """
    found = np.full(len(windows.questions), -1)
    labelled = np.flatnonzero(windows.start_positions)
    tokens = windows.start_positions - windows.context_positions + windows.context_starts
    found[windows.question_index[labelled]] = tokens[labelled]  # the same in all of its windows
    return found


def score(windows, answers):
    """Scores the answers of all runs.

    The intervals are at 95 %, over the questions: what other questions of this kind would give.
    That of exact match is Wilson's, of the mean count over the runs, and that of F1 Student's, of
    the questions' means over the runs.

    Args:
        windows: the `SquadWindows` of the dev set.
        answers: list with, for each run, a dictionary of a question's id -> text.

    Returns:
        Dictionary of `exact_match` and `f1`, each {`values` of the runs, `mean`, `low`, `high`},
        all in percent; `by_answer_position` and `by_passage_length`, lists of {`first` and `last`
        token (`None`: no end), `questions`, `exact_match`, `f1`} without empty groups.
    """
    runs = [squad_scores(windows.questions, predictions) for predictions in answers]
    shares = np.array([list(run.per_question.values()) for run in runs])  # (runs, questions, 2)
    sizes = np.array([len(spans) for spans in windows.spans])
    whole = _entry(shares)
    return {
        "exact_match": {"values": [run.exact_match for run in runs], **whole["exact_match"]},
        "f1": {"values": [run.f1 for run in runs], **whole["f1"]},
        "by_answer_position": _groups(shares, answer_positions(windows)),
        "by_passage_length": _groups(shares, sizes),
    }


def random_spans(windows, max_answer_length):
    """Returns the scores of a model that knows nothing, in percent: its logits are random."""
    logits = np.random.default_rng(0).normal(size=(2, *windows.token_ids.shape))
    answers = squad_predictions(windows, *logits, max_answer_length=max_answer_length)
    scores = squad_scores(windows.questions, answers)
    return {"exact_match": scores.exact_match, "f1": scores.f1}


def group_name(group):
    """Returns what a group of questions is called, such as "32-63" tokens."""
    return f"{group['first']}+" if group["last"] is None else f"{group['first']}-{group['last']}"


def _groups(shares, values):
    """Scores of the questions with values between two edges."""
    found = []
    for first, behind in zip(EDGES, (*EDGES[1:], math.inf), strict=True):
        chosen = (values >= first) & (values < behind)
        if chosen.any():
            last = None if behind == math.inf else behind - 1
            found.append({"first": first, "last": last, **_entry(shares[:, chosen])})
    return found


def _entry(shares):
    """Means and intervals of `(runs, questions, 2)` shares."""
    exact, f1 = np.moveaxis(shares.mean(axis=0), -1, 0)
    return {
        "questions": shares.shape[1],
        "exact_match": _wilson(exact),
        "f1": _student(f1),
    }


def _wilson(exact):
    low, high = wilson_interval(round(exact.sum()), len(exact))
    return _percent(exact.mean(), low, high)


def _student(values):
    mean, low, high = mean_interval(values)
    return _percent(mean, max(low, 0.0), min(high, 1.0))


def _percent(mean, low, high):
    numbers = {"mean": 100 * mean, "low": 100 * low, "high": 100 * high}
    return {name: None if math.isnan(x) else float(x) for name, x in numbers.items()}
