"""SQuAD's JSON files."""

import dataclasses
import json

from keras_tupe._json_file import parse_json
from keras_tupe.data.tasks._lines import read_text

_WHAT = "a file of SQuAD v1.1 (JSON)"


@dataclasses.dataclass(frozen=True)
class SquadQuestion:
    """A question about a paragraph.

    Args:
        id: the question's name, unique in its file.
        title: of the article.
        context: the paragraph that holds the answer, as in the file.
        question: without white space around it.
        answers: tuple of `(text, start)`: `context[start : start + len(text)] == text`, in
            characters.
    """

    id: str
    title: str
    context: str
    question: str
    answers: tuple


def read_squad(path, *, skipped=None):
    """Reads the questions of a file of SQuAD v1.1, or of one in its format, as SQuADShifts.

    Args:
        path: name of the JSON file.
        skipped: a list: then bad questions are left out, and a sentence for each is appended
            to it. Without it the first bad question is an error.

    Returns:
        List of `SquadQuestion`s, in the order of the file.

    Raises:
        ValueError: if the file is not there, is not UTF-8, no JSON or not SQuAD's; a paragraph or
            a question is empty; two questions have one id; or a question has no answer, or
            one that is not in its paragraph where it says. Messages name the file and the id.

    References:
        Rajpurkar et al. SQuAD: 100,000+ Questions for Machine Comprehension of Text. EMNLP 2016.
        https://rajpurkar.github.io/SQuAD-explorer/
    """
    text = read_text(path, _WHAT)
    try:
        content = parse_json(text)
    except ValueError as error:
        is_syntax = isinstance(error, json.JSONDecodeError)
        reason = f"{error.msg} in line {error.lineno}" if is_syntax else str(error)
        raise ValueError(
            f"The file must be {_WHAT}. Received: file={str(path)!r}, {reason}"
        ) from None
    questions, ids = [], set()
    for title, paragraph, entry, place in _entries(content, path):
        try:
            question = _question(title, paragraph, entry, place)
            if question.id in ids:
                raise ValueError(
                    f"The ids of questions must differ. Received: {place}, id {question.id!r} again"
                )
        except ValueError as error:
            if skipped is None:
                raise
            skipped.append(str(error))
            continue
        ids.add(question.id)
        questions.append(question)
    if not questions:
        raise ValueError(
            f"{_WHAT[0].upper()}{_WHAT[1:]} must have a good question. "
            f"Received: file={str(path)!r}, which has none"
        )
    return questions


def _entries(content, path):
    """Yields `(title, paragraph, entry of a question, where it is)`."""
    file = f"file={str(path)!r}"
    for i, article in enumerate(_part(content, "data", list, file)):
        title = article.get("title", "") if isinstance(article, dict) else ""
        for j, paragraph in enumerate(_part(article, "paragraphs", list, f"{file}, data[{i}]")):
            place = f"{file}, data[{i}], paragraphs[{j}]"
            for k, entry in enumerate(_part(paragraph, "qas", list, place)):
                yield str(title), paragraph, entry, f"{place}, qas[{k}]"


def _question(title, paragraph, entry, place):
    name = _part(entry, "id", str, place)
    place = f"{place}, id {name!r}"
    context = _text(paragraph, "context", place)
    question = _text(entry, "question", place).strip()
    answers = []
    for answer in _part(entry, "answers", list, place):
        text, start = _text(answer, "text", place), _part(answer, "answer_start", int, place)
        if start < 0 or context[start : start + len(text)] != text:
            raise ValueError(
                "An answer must be in its context, at the character `answer_start`; correct the "
                f"file, or leave such questions out with `skipped`. Received: {place}, "
                f"answer_start={start}, answer {text!r}, where the context has "
                f"{context[max(start, 0) : max(start, 0) + len(text)]!r}"
            )
        answers.append((text, start))
    if not answers:
        raise ValueError(
            "A question of SQuAD v1.1 must have an answer; those of v2.0 without one can be left "
            f"out with `skipped`. Received: {place}, without an answer"
        )
    return SquadQuestion(name, title, context, question, tuple(answers))


def _part(holder, key, kind, place):
    value = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        found = f"{type(value).__name__}" if isinstance(holder, dict) and key in holder else "none"
        raise ValueError(
            f"{_WHAT[0].upper()}{_WHAT[1:]} must have a {kind.__name__} under {key!r} there. "
            f"Received: {place}, {found} under {key!r}"
        )
    return value


def _text(holder, key, place):
    text = _part(holder, key, str, place)
    if not text.strip():
        raise ValueError(f"{key!r} must be text. Received: {place}, {key}={text!r}")
    return text
