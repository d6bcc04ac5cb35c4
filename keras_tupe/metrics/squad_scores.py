"""Exact match and F1 of answers to questions."""

import collections
import collections.abc
import dataclasses

from keras_tupe.metrics.normalize_answer import normalize_answer


@dataclasses.dataclass(frozen=True)
class SquadScores:
    """Scores of answers, as the official scorer of SQuAD v1.1 gives them.

    Args:
        exact_match: percent of the questions, 0 to 100.
        f1: mean over the questions, in percent.
        per_question: dict from a question's id to `(exact, f1)`: 0 or 1, and a share in [0, 1].
        unanswered: tuple of the ids that had no prediction. They count as 0.
    """

    exact_match: float
    f1: float
    per_question: dict
    unanswered: tuple


def squad_scores(questions, predictions):
    """Scores answers by the rules of the official scorer of SQuAD v1.1.

    An answer matches exactly if it equals a gold answer after `normalize_answer`. Its F1 is that of
    the two multisets of words, 2 common / (words of one + words of the other), the best over the
    gold answers; 0 if no word is common, even if both have none. As in the official scorer a
    question without prediction counts as 0, and predictions for other questions do not count.

    Args:
        questions: list of objects with the attributes `id`, unique, and `answers`, a sequence of
            `(text, start)` with at least one entry, as `keras_tupe.data.SquadQuestion`.
        predictions: dict from id to answer; "" is an answer.

    Returns:
        A `SquadScores`.

    Raises:
        TypeError: if `predictions` is no dict, or a prediction or gold answer is no string.
        ValueError: if there are no questions, two have one id, one has no gold answer, or not a
            single one has a prediction.

    Example:
        >>> import types
        >>> question = types.SimpleNamespace(id="q", answers=(("the black cat", 4), ("cat", 14)))
        >>> squad_scores([question], {"q": "black cats"}).per_question
        {'q': (0, 0.5)}

    References:
        Rajpurkar et al. SQuAD: 100,000+ Questions for Machine Comprehension of Text. EMNLP 2016,
        section 6.1, and the scorer at https://rajpurkar.github.io/SQuAD-explorer/
    """
    questions = list(questions)
    _check(questions, predictions)
    per_question, unanswered = {}, []
    for question in questions:
        if question.id in predictions:
            per_question[question.id] = _best(question, predictions[question.id])
        else:
            per_question[question.id] = (0, 0.0)
            unanswered.append(question.id)
    exact, shares = zip(*per_question.values(), strict=True)
    count = len(questions)
    return SquadScores(
        100 * sum(exact) / count, 100 * sum(shares) / count, per_question, tuple(unanswered)
    )


def _best(question, prediction):
    try:
        said = normalize_answer(prediction)
        gold = [normalize_answer(text) for text, _ in question.answers]
    except TypeError as error:
        raise TypeError(f"{error}, question {question.id!r}") from None
    return int(said in gold), max(_word_f1(said.split(), words.split()) for words in gold)


def _word_f1(said, gold):
    common = (collections.Counter(said) & collections.Counter(gold)).total()
    return 2 * common / (len(said) + len(gold)) if common else 0.0


def _check(questions, predictions):
    if not isinstance(predictions, collections.abc.Mapping):
        raise TypeError(
            "`predictions` must be a dict from a question's id to its answer. "
            f"Received: predictions of type {type(predictions).__name__}"
        )
    if not questions:
        raise ValueError("There must be at least one question. Received: questions=[]")
    ids = collections.Counter(question.id for question in questions)
    repeated = [name for name, count in ids.items() if count > 1]
    if repeated:
        raise ValueError(
            "Two questions have one id, so that their answers cannot be told apart. "
            f"Received: id={repeated[0]!r}"
        )
    for question in questions:
        if not question.answers:
            raise ValueError(
                "Each question needs at least one gold answer; questions without belong to SQuAD "
                f"v2.0. Received: answers=(), question {question.id!r}"
            )
    if not any(name in predictions for name in ids):
        raise ValueError(
            "Not a single question has a prediction; are the predictions of another file? "
            f"Received: {len(ids)} questions, the first {next(iter(ids))!r}; "
            f"{len(predictions)} predictions"
        )
