"""Questions and contexts as rows of fixed length; long contexts in windows that overlap."""

import dataclasses
import operator

import numpy as np

from keras_tupe.data.tasks.squad._spans import answer_tokens, character_spans, tokenize_rows


@dataclasses.dataclass(frozen=True)
class SquadWindows:
    """Windows of questions, and what turns predictions back into text.

    Args:
        token_ids: int32, `(windows, length)`.
        padding_mask: int32, `(windows, length)`, 1 = real token.
        segment_ids: int32, `(windows, length)`, 1 for the context and the end token behind it.
        start_positions: int32, `(windows,)`, position of the answer's first token in its row; 0 in
            windows that do not hold the whole answer.
        end_positions: int32, `(windows,)`, position of its last token.
        questions: list of the `SquadQuestion`s.
        question_index: int32, `(windows,)`, the question of each window, ascending.
        context_positions: int32, `(windows,)`, position of the first context token in each row.
        context_starts: int32, `(windows,)`, number of this token among those of the context.
        context_sizes: int32, `(windows,)`, context tokens of each window.
        spans: list with, for each question, the characters of each token of its context: int32
            `(tokens, 2)`, start and end. Questions about one context share the array.
        inexact_ids: ids of the questions whose answers begin or end inside a token, so that the
            labels hold more than the answer.
        unlabelled_ids: ids of the questions of which no window holds the whole answer.
    """

    token_ids: np.ndarray
    padding_mask: np.ndarray
    segment_ids: np.ndarray
    start_positions: np.ndarray
    end_positions: np.ndarray
    questions: list
    question_index: np.ndarray
    context_positions: np.ndarray
    context_starts: np.ndarray
    context_sizes: np.ndarray
    spans: list
    inexact_ids: tuple
    unlabelled_ids: tuple

    def is_context(self):
        """Which tokens belong to the context: bool, `(windows, length)`."""
        places = np.arange(self.token_ids.shape[1]) - self.context_positions[:, np.newaxis]
        return (places >= 0) & (places < self.context_sizes[:, np.newaxis])

    def is_max_context(self):
        """Which context tokens see the most in this window: bool, `(windows, length)`.

        Of all windows with the token it is the one where min(tokens on its left, tokens on its
        right) + size / 100 is largest, as in BERT; the first of them on a tie. So each token of a
        context is marked in one window.
        """
        marked = self.is_context()
        firsts = np.searchsorted(self.question_index, np.arange(len(self.questions) + 1))
        for index in np.flatnonzero(np.diff(firsts) > 1):
            windows = slice(firsts[index], firsts[index + 1])
            sizes = self.context_sizes[windows, np.newaxis]  # (w, 1)
            left = np.arange(len(self.spans[index])) - self.context_starts[windows, np.newaxis]
            right = sizes - 1 - left
            scores = np.where((left < 0) | (right < 0), -1, 100 * np.minimum(left, right) + sizes)
            best = scores.argmax(axis=0) == np.arange(len(scores))[:, np.newaxis]  # (w, tokens)
            for window, row in zip(range(windows.start, windows.stop), best, strict=True):
                start, size = self.context_starts[window], self.context_sizes[window]
                place = self.context_positions[window]
                marked[window, place : place + size] = row[start : start + size]
        return marked


def squad_windows(questions, tokenizer, length=384, *, doc_stride=128, max_question_length=64):
    """Makes rows of questions and contexts.

    The rows are, by the kind of the tokenizer's vocabulary,

        WordPiece:      [CLS] question [SEP] context [SEP]
        SentencePiece:  <s> question </s> </s> context </s>

    A context that does not fit is cut into windows, of which each begins `doc_stride` tokens
    behind the one before, until its end is reached. Labels are found by characters: the first and
    the last token that hold a part of the answer. Where there are several answers (as in
    the dev set), it is the first one that begins and ends where tokens do, or else the first.

    **Questions longer than `max_question_length` lose their end, as in BERT.**

    Args:
        questions: list of `SquadQuestion`s.
        tokenizer: a `WordPiece` or `SentencePieceBpe`, or what has their `tokenize_with_offsets`,
            `start_id`, `separator_ids`, `end_id` and `pad_id`.
        length: tokens per row, special ones included. Defaults to 384.
        doc_stride: tokens from the beginning of one window to that of the next. Defaults to 128.
        max_question_length: tokens of a question that are kept. Defaults to 64.

    Returns:
        A `SquadWindows`, with the windows in the order of the questions.

    Raises:
        ValueError: if there are no questions, or a row has no room for `doc_stride` tokens of
            context beside the longest question, so that tokens would be lost between windows.
        TypeError: if a size is not an integer, or `tokenizer` is another kind of object.

    References:
        Devlin et al. BERT. NAACL 2019. https://arxiv.org/abs/1810.04805
    """
    if not hasattr(tokenizer, "tokenize_with_offsets"):
        raise TypeError(
            "`tokenizer` must be a `keras_tupe.tokenizers.WordPiece` or `SentencePieceBpe`; that "
            f"of a `TupeTokenizer` is its `op`. Received: {type(tokenizer).__name__}"
        )
    questions = list(questions)
    specials = 2 + len(tokenizer.separator_ids)
    _check(questions, length, doc_stride, max_question_length, specials)
    contexts = list(dict.fromkeys(question.context for question in questions))
    rows = {
        text: (ids, character_spans(text, starts, ends))
        for text, (ids, starts, ends) in zip(
            contexts, tokenize_rows(tokenizer, contexts), strict=True
        )
    }
    asked = tokenize_rows(tokenizer, [question.question for question in questions])
    windows, labels = [], []
    for index, (question, (ids, _, _)) in enumerate(zip(questions, asked, strict=True)):
        ids, (tokens, spans) = ids[:max_question_length], rows[question.context]
        place = 1 + len(ids) + len(tokenizer.separator_ids)
        room = length - place - 1
        starts = range(0, max(len(tokens) - room, 0) + doc_stride, doc_stride)
        windows += [(index, ids, tokens[at : at + room], place, at) for at in starts]
        labels.append(answer_tokens(spans, question.answers))
    return _filled(questions, tokenizer, length, windows, labels, rows)


def _filled(questions, tokenizer, length, windows, labels, rows):
    token_ids = np.full((len(windows), length), tokenizer.pad_id, "int32")
    token_ids[:, 0] = tokenizer.start_id
    for row, (_, ids, tokens, place, _) in zip(token_ids, windows, strict=True):
        row[1 : 1 + len(ids)] = ids
        row[1 + len(ids) : place] = tokenizer.separator_ids
        row[place : place + len(tokens)] = tokens
        row[place + len(tokens)] = tokenizer.end_id
    index, sizes, place, start = np.array(
        [(index, len(tokens), place, at) for index, _, tokens, place, at in windows], "int32"
    ).T
    places, ends = np.arange(length), (place + sizes)[:, np.newaxis]
    is_second = (places >= place[:, np.newaxis]) & (places <= ends)
    first, last = np.array([label[:2] if label else (-1, -1) for label in labels], "int32")[index].T
    holds = (first >= start) & (last < start + sizes)
    labelled = {questions[i].id for i in index[holds]}
    return SquadWindows(
        token_ids=token_ids,
        padding_mask=(places <= ends).astype("int32"),
        segment_ids=is_second.astype("int32"),
        start_positions=np.where(holds, first - start + place, 0).astype("int32"),
        end_positions=np.where(holds, last - start + place, 0).astype("int32"),
        questions=questions,
        question_index=index,
        context_positions=place,
        context_starts=start,
        context_sizes=sizes,
        spans=[rows[question.context][1] for question in questions],
        inexact_ids=tuple(
            question.id
            for question, label in zip(questions, labels, strict=True)
            if label is None or not label[2]
        ),
        unlabelled_ids=tuple(q.id for q in questions if q.id not in labelled),
    )


def _check(questions, length, doc_stride, max_question_length, specials):
    if not questions:
        raise ValueError("There must be at least one question. Received: questions=[]")
    for name, value in (
        ("length", length),
        ("doc_stride", doc_stride),
        ("max_question_length", max_question_length),
    ):
        try:
            operator.index(value)
        except TypeError:
            raise TypeError(f"`{name}` must be an integer. Received: {name}={value!r}") from None
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {name}={value}")
    room = length - specials - max_question_length
    if room < doc_stride:
        raise ValueError(
            f"A row must have room for {specials} special tokens, the question and `doc_stride` "
            "tokens of context, or tokens between two windows would be lost. Choose longer rows, a "
            f"smaller stride or shorter questions. Received: length={length}, "
            f"doc_stride={doc_stride}, max_question_length={max_question_length}"
        )
