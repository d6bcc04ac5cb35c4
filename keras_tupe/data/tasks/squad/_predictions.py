"""Logits of start and end to answers, cut out of the original contexts."""

import numpy as np


def squad_predictions(windows, start_logits, end_logits, *, max_answer_length=30):
    """Finds the best answer to each question.

    The best is the span with the largest sum of start and end logit, among all spans of at most
    `max_answer_length` tokens that lie in the context part of a window, and whose first token
    sees the most in this window (`SquadWindows.is_max_context`). On a tie it is the span in the
    first window, then the shortest, then the first. The answer is cut out of the context by
    characters, as it is written there.

    Differences from the source: BERT pairs the 20 best starts of a window with its 20 best ends,
    and answers "empty" if no such pair is a span; here all spans compete.

    Args:
        windows: a `SquadWindows`.
        start_logits: `(windows, length)`.
        end_logits: `(windows, length)`.
        max_answer_length: tokens of an answer. Defaults to 30.

    Returns:
        Dictionary of the answer to each question, by its id. An answer is `""` only if its context
        has no token.

    Raises:
        ValueError: if the logits have another shape than the token ids or are not finite, or
            `max_answer_length` is below 1.

    References:
        Devlin et al. BERT. NAACL 2019. https://arxiv.org/abs/1810.04805
    """
    starts, ends, more = span_scores(windows, start_logits, end_logits, max_answer_length)
    scores, firsts, lasts = _best_spans(starts, ends, more)

    answers = {question.id: "" for question in windows.questions}
    best = dict.fromkeys(range(len(windows.questions)), -np.inf)
    for window in np.flatnonzero(scores > -np.inf):
        index = windows.question_index[window]
        if scores[window] <= best[index]:
            continue
        best[index] = scores[window]
        question, spans = windows.questions[index], windows.spans[index]
        shift = windows.context_starts[window] - windows.context_positions[window]
        start, end = spans[firsts[window] + shift, 0], spans[lasts[window] + shift, 1]
        answers[question.id] = question.context[start:end]
    return answers


def span_scores(windows, start_logits, end_logits, max_answer_length):
    """What may begin and end an answer.

    Args:
        windows: a `SquadWindows`.
        start_logits: `(windows, length)`.
        end_logits: `(windows, length)`.
        max_answer_length: tokens of an answer.

    Returns:
        `(starts, ends, max_answer_length)`: copies of the logits, float32, minus infinity where no
        answer may begin or end, and the tokens of an answer that a window may hold.

    Raises:
        ValueError: as `squad_predictions`.
    """
    if max_answer_length < 1:
        raise ValueError(
            "`max_answer_length` must be at least 1 token. "
            f"Received: max_answer_length={max_answer_length}"
        )
    is_context = windows.is_context()
    starts = _masked("start_logits", start_logits, is_context)
    starts[~windows.is_max_context()] = -np.inf
    ends = _masked("end_logits", end_logits, is_context)
    return starts, ends, min(max_answer_length, windows.token_ids.shape[1])


def _best_spans(starts, ends, max_answer_length):
    """Score, first and last position of the best span of each row."""
    rows, length = np.arange(len(starts)), starts.shape[1]
    best = np.full(len(starts), -np.inf)
    first, last = np.zeros((2, len(starts)), "int64")
    for more in range(max_answer_length):
        sums = starts[:, : length - more] + ends[:, more:]  # (w, length - more)
        place = sums.argmax(axis=1)
        is_better = sums[rows, place] > best
        best = np.where(is_better, sums[rows, place], best)
        first = np.where(is_better, place, first)
        last = np.where(is_better, place + more, last)
    return best, first, last


def _masked(name, logits, is_context):
    """A copy of the logits, minus infinity outside of the context."""
    logits = np.asarray(logits, "float32")
    if logits.shape != is_context.shape:
        raise ValueError(
            f"`{name}` must have one number for each token of each window, {is_context.shape}. "
            f"Received: {name}.shape={logits.shape}"
        )
    is_bad = is_context & ~np.isfinite(logits)
    if is_bad.any():
        window, place = np.argwhere(is_bad)[0]
        raise ValueError(
            f"`{name}` must be finite in the context part; has training diverged? "
            f"Received: {name}[{window}, {place}]={logits[window, place]}"
        )
    return np.where(is_context, logits, np.float32(-np.inf))
