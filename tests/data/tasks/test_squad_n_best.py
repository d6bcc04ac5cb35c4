"""The best few answers to a question, with their probabilities."""

import re

import numpy as np
import pytest

from keras_tupe.data.tasks.squad import (
    SquadQuestion,
    squad_n_best,
    squad_predictions,
    squad_windows,
)


class Words:
    """A tokenizer of words between spaces; special ids are 0 to 3."""

    start_id, separator_ids, end_id, pad_id = 1, (2,), 2, 0

    def tokenize_with_offsets(self, strings):
        found = [list(re.finditer(r"\S+", string)) for string in strings]
        return (
            [[4] * len(words) for words in found],
            [[word.start() for word in words] for words in found],
            [[word.end() for word in words] for words in found],
        )


def windows_of(*contexts, length=16, doc_stride=5):
    questions = [
        SquadQuestion(f"q{number}", "Title", context, "Who is it?", ((context.split()[0], 0),))
        for number, context in enumerate(contexts)
    ]
    sizes = {"doc_stride": doc_stride, "max_question_length": 3}
    return squad_windows(questions, Words(), length, **sizes)


def n_best_by_loops(windows, starts, ends, n, max_answer_length):
    """All spans of all windows, one after the other; then the best of each text."""
    marked, answers = windows.is_max_context(), {}
    for index, question in enumerate(windows.questions):
        best = {}
        for window in np.flatnonzero(windows.question_index == index):
            place, size = windows.context_positions[window], windows.context_sizes[window]
            spans = windows.spans[index][windows.context_starts[window] :]
            for more in range(max_answer_length):
                for first in range(size - more):
                    if not marked[window, place + first]:
                        continue
                    score = starts[window, place + first] + ends[window, place + first + more]
                    text = question.context[spans[first, 0] : spans[first + more, 1]]
                    if text not in best or score > best[text]:
                        best[text] = score
        ranked = sorted(best.items(), key=lambda item: -item[1])[:n]
        total = sum(np.exp(float(score)) for _, score in ranked)
        answers[question.id] = [(text, np.exp(float(score)) / total) for text, score in ranked]
    return answers


def random_logits(windows, seed):
    logits = np.random.default_rng(seed).normal(size=(2, *windows.token_ids.shape))
    return logits.astype("float32")


@pytest.mark.parametrize(("n", "max_answer_length"), [(1, 4), (5, 1), (20, 4), (500, 30)])
def test_they_are_the_best_of_all_spans(n, max_answer_length):
    words = [" ".join(f"w{place % 7}" for place in range(size)) for size in (1, 5, 11, 23)]
    windows = windows_of(*words)
    assert len(windows.token_ids) > len(words)
    for seed in range(4):
        starts, ends = random_logits(windows, seed)
        sizes = {"max_answer_length": max_answer_length}
        found = squad_n_best(windows, starts, ends, n=n, **sizes)
        wanted = n_best_by_loops(windows, starts, ends, n, max_answer_length)
        assert {name: [text for text, _ in best] for name, best in found.items()} == {
            name: [text for text, _ in best] for name, best in wanted.items()
        }
        for name, best in found.items():
            chances = [chance for _, chance in best]
            np.testing.assert_allclose(chances, [chance for _, chance in wanted[name]], rtol=1e-6)
            assert sum(chances) == pytest.approx(1)
        answers = squad_predictions(windows, starts, ends, **sizes)
        assert answers == {name: best[0][0] for name, best in found.items()}


@pytest.mark.parametrize("n", [1, 3, 40])
def test_of_equal_spans_the_first_comes_first(n):
    windows = windows_of(" ".join(f"w{place}" for place in range(23)))
    for seed in range(5):
        logits = np.random.default_rng(seed).integers(0, 2, (2, *windows.token_ids.shape))
        found = squad_n_best(windows, *logits, n=n, max_answer_length=4)["q0"]
        wanted = n_best_by_loops(windows, *logits, n, 4)["q0"]
        assert [text for text, _ in found] == [text for text, _ in wanted]
        assert squad_predictions(windows, *logits, max_answer_length=4)["q0"] == found[0][0]


def test_a_text_that_comes_often_is_given_once():
    windows = windows_of("no no no no no yes no no", length=24)
    starts, ends = np.zeros((2, 1, 24))
    starts[0, 6], ends[0, 6], starts[0, 5] = 3, 3, 2
    found = squad_n_best(windows, starts, ends, n=3, max_answer_length=1)["q0"]
    assert [text for text, _ in found] == ["no", "yes"]
    np.testing.assert_allclose([chance for _, chance in found], np.exp([6, 0]) / (1 + np.exp(6)))


def test_large_logits_have_chances_too():
    windows = windows_of("a b c")
    starts, ends = np.full((2, 1, 16), 1e30)
    found = squad_n_best(windows, starts, ends, n=2)["q0"]
    assert [chance for _, chance in found] == [0.5, 0.5]


def test_numbers_that_make_no_sense_are_refused():
    windows = windows_of("a b c")
    logits = np.zeros((1, 16))
    with pytest.raises(ValueError, match=r"`n` must be at least 1 answer\. Received: n=0$"):
        squad_n_best(windows, logits, logits, n=0)
    with pytest.raises(ValueError, match=r"at least 1 token\. Received: max_answer_length=0$"):
        squad_n_best(windows, logits, logits, max_answer_length=0)
    with pytest.raises(ValueError, match="`end_logits` must be finite"):
        squad_n_best(windows, logits, logits * np.nan)
