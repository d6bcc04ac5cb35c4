"""Logits of start and end to the best few answers."""

import itertools

import numpy as np

from keras_tupe.data.tasks.squad._predictions import span_scores


def squad_n_best(windows, start_logits, end_logits, *, n=20, max_answer_length=30):
    """Finds the best answers to each question, with a probability for each.

    Spans compete as in `squad_predictions`, whose answer is the first here. A text that several
    spans give counts once, as its best span.

    Equation, with score_k the sum of start and end logit of the k-th best text:

        probability_k = exp(score_k) / sum_j exp(score_j),    j over the texts that are returned

    Differences from the source: as `squad_predictions`; the probabilities are BERT's.

    Args:
        windows: a `SquadWindows`.
        start_logits: `(windows, length)`.
        end_logits: `(windows, length)`.
        n: texts to return, at most. Defaults to 20.
        max_answer_length: tokens of an answer. Defaults to 30.

    Returns:
        Dictionary of the answers to each question, by its id: a list of `(text, probability)`, the
        best first; `[("", 1.0)]` if its context has no token.

    Raises:
        ValueError: as `squad_predictions`, and if `n` is below 1.

    References:
        Devlin et al. BERT. NAACL 2019. https://arxiv.org/abs/1810.04805
    """
    if n < 1:
        raise ValueError(f"`n` must be at least 1 answer. Received: n={n}")
    starts, ends, more = span_scores(windows, start_logits, end_logits, max_answer_length)
    bounds = np.searchsorted(windows.question_index, np.arange(len(windows.questions) + 1))
    found = {}
    for index, (first, last) in enumerate(itertools.pairwise(bounds.tolist())):
        texts = _best_texts(
            windows, index, first, _sums(starts[first:last], ends[first:last], more), n
        )
        scores = np.array(list(texts.values()), "float64")
        chances = np.exp(scores - scores[:1])
        chances /= chances.sum()
        name = windows.questions[index].id
        found[name] = list(zip(texts, chances.tolist(), strict=True)) or [("", 1.0)]
    return found


def _sums(starts, ends, more):
    """Scores of all spans of some windows: `(windows, max_answer_length, length)`.

    In the order of the axes the first of equal scores is that of `squad_predictions`.
    """
    sums = np.full((len(starts), more, starts.shape[1]), -np.inf, "float32")
    for size in range(more):
        sums[:, size, : starts.shape[1] - size] = (
            starts[:, : starts.shape[1] - size] + ends[:, size:]
        )
    return sums


def _best_texts(windows, index, first, sums, n):
    """The best different texts of a question, best first: dictionary of text -> score."""
    question, spans = windows.questions[index], windows.spans[index]
    shape, sums = sums.shape, sums.ravel()
    texts, count = {}, n
    while True:
        count = min(2 * count, len(sums))
        limit = np.partition(sums, len(sums) - count)[len(sums) - count]
        places = np.flatnonzero((sums >= limit) & (sums > -np.inf))
        for place in places[np.argsort(-sums[places], kind="stable")]:
            window, more, token = np.unravel_index(place, shape)
            shift = (
                windows.context_starts[first + window] - windows.context_positions[first + window]
            )
            start, end = spans[token + shift, 0], spans[token + more + shift, 1]
            texts.setdefault(question.context[start:end], float(sums[place]))
            if len(texts) == n:
                return texts
        if count == len(sums):
            return texts
