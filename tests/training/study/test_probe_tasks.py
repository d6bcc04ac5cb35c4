"""The tasks of probes: their answers by plain loops, their rows, and the order of their groups."""

import numpy as np
import pytest

from training.studies.probe.rows import ProbeRows
from training.studies.probe.tasks import TASKS, get
from training.studies.probe.tasks._task import (
    CLS,
    FRAME,
    HEADER,
    LETTERS,
    NO_NUMBER,
    SEP,
    Vocabulary,
)

LENGTH = 32
TEST_LENGTHS = (32, 64, 128)
FIRST_LETTER, FIRST_MARKED, FIRST_NUMBER = 4, 4 + LETTERS, 4 + 2 * LETTERS


def marks_of(body):
    return [i for i, token in enumerate(body) if FIRST_MARKED <= token < FIRST_NUMBER]


# Each answers from the row alone, every position that has an answer: another way than the task's.


def absolute_position(number, body):
    return {-HEADER: body[number - 1]}


def offset(number, body):
    step = {1: -2, 2: -1, 3: 1, 4: 2}[number]
    return {i: body[i + step] for i in range(len(body)) if 0 <= i + step < len(body)}


def nearest_mark(number, body):
    found = {}
    for i in range(len(body)):
        if i not in marks_of(body):
            for far in range(1, len(body)):
                near = [j for j in (i - far, i + far) if j in marks_of(body)]
                if near:
                    if len({body[j] for j in near}) == 1:
                        found[i] = body[near[0]]
                    break
    return found


def mark_distance(number, body):
    (mark,) = marks_of(body)
    near = [i for i in range(len(body)) if 1 <= abs(i - mark) <= 8]
    return {i: FIRST_NUMBER + abs(i - mark) - 1 for i in near}


def first_of_two(number, body):
    one, two = marks_of(body)
    assert body[one] != body[two]
    return {-HEADER: body[one]}


def reversed_copy(number, body):
    return dict(enumerate(reversed(body)))


def matching_bracket(number, body):
    """By taking away pairs of neighbours until nothing is left."""
    left, found = list(range(len(body))), {}
    while left:
        at = next(
            n
            for n in range(len(left) - 1)
            if body[left[n]] < FIRST_MARKED <= body[left[n + 1]] < FIRST_NUMBER
        )
        one, two = left[at : at + 2]
        found |= {one: body[two], two: body[one]}
        del left[at : at + 2]
    return found


def _partner(body, at):
    """Where the bracket stands that belongs to another."""
    step = -1 if FIRST_MARKED <= body[at] < FIRST_NUMBER else 1
    depth, i = step, at
    while depth:
        i += step
        depth += -1 if FIRST_MARKED <= body[i] < FIRST_NUMBER else 1
    return i


def majority(number, body):
    counts = sorted(((body.count(token), token) for token in set(body)), reverse=True)
    assert len(counts) == 1 or counts[0][0] > counts[1][0]
    return {-HEADER: counts[0][1]}


# Where in a row stands what decides the answer at a position, in tasks whose answer stands where
# training never was: not in reversed copies, nor in all letters.
WHERE = {
    "offset": lambda number, body, at: at + {1: -2, 2: -1, 3: 1, 4: 2}[number],
    "nearest_mark": lambda number, body, at: min(marks_of(body), key=lambda i: abs(i - at)),
    "mark_distance": lambda number, body, at: marks_of(body)[0],
    "first_of_two": lambda number, body, at: min(marks_of(body)),
    "matching_bracket": lambda number, body, at: _partner(body, at),
}

ORACLES = {
    oracle.__name__: oracle
    for oracle in (
        *(absolute_position, offset, nearest_mark, mark_distance),
        *(first_of_two, reversed_copy, matching_bracket, majority),
    )
}


def parts(row, names):
    """The parts of a row: name of the task, number or `None`, body."""
    cls, task, number, *body, sep = (int(token) for token in row)
    assert (cls, sep) == (CLS, SEP)
    name = names[task - Vocabulary(LENGTH, len(names)).task(0)]
    return name, None if number == NO_NUMBER else number - FIRST_NUMBER + 1, body


def probe_rows(names=tuple(TASKS), **changes):
    return ProbeRows(
        names, **{"length": LENGTH, "batch_size": 16, "num_batches": 4, "seed": 0} | changes
    )


def test_every_task_has_an_oracle_and_an_unknown_one_is_refused():
    assert ORACLES.keys() == TASKS.keys()
    assert len(TASKS) == 8
    with pytest.raises(ValueError, match=r"must be one of .*; the nearest is 'offset'"):
        get("ofset")


@pytest.mark.parametrize("name", TASKS)
def test_answers_of_training_are_those_of_plain_loops(name):
    rows = probe_rows([name])
    lengths = set()
    for index in range(60):
        row, positions, tokens = rows.example(index)
        found, number, body = parts(row, [name])
        wanted = ORACLES[name](number, body)
        assert found == name
        assert dict(zip((positions - HEADER).tolist(), tokens, strict=True)) == wanted
        lengths.add(len(row))
    assert lengths == set(range(LENGTH // 2, LENGTH + 1, 2))


@pytest.mark.parametrize("length", TEST_LENGTHS)
@pytest.mark.parametrize("name", TASKS)
def test_answers_of_tests_are_decided_where_training_never_was(name, length):
    groups, members = 4, 4
    rows = probe_rows().test(name, length, groups, members)
    assert rows.token_ids.shape == (groups * members, length)
    for number, row in enumerate(rows.token_ids):
        found, argument, body = parts(row, list(TASKS))
        wanted = ORACLES[name](argument, body)
        mine = rows.rows == number
        answers = dict(zip(rows.positions[mine] - HEADER, rows.labels[mine], strict=True))
        assert found == name
        assert answers
        assert answers.items() <= wanted.items()
        if length == LENGTH:
            assert answers == wanted
        else:
            assert all(at == -HEADER or at + HEADER >= LENGTH for at in answers)
            if name in WHERE:
                for at, token in answers.items():
                    found = WHERE[name](argument, body, at)
                    assert body[found] == token or name == "mark_distance"
                    assert found + HEADER >= LENGTH
            if name == "absolute_position":  # no other position was ever named
                assert argument <= LENGTH - FRAME


@pytest.mark.parametrize("name", TASKS)
def test_rows_of_a_group_have_the_same_tokens(name):
    for length in TEST_LENGTHS[:2]:
        rows = probe_rows().test(name, length, 3, 4)
        groups = np.sort(rows.token_ids, axis=1).reshape(3, 4, length)
        assert (groups == groups[:, :1]).all()
        assert len(np.unique(rows.token_ids, axis=0)) == 12
        if length > LENGTH and name != "absolute_position":
            seen = rows.token_ids.reshape(3, 4, length)[:, :, :LENGTH]
            assert (seen == seen[:, :1]).all()


def test_a_row_is_a_function_of_seed_and_number():
    inputs, labels, weights = probe_rows().batch(1)
    again = probe_rows().batch(1)
    other = probe_rows(seed=1).batch(1)
    for name, values in inputs.items():
        np.testing.assert_array_equal(values, again[0][name])
    assert (inputs["token_ids"] != other[0]["token_ids"]).any()
    assert (inputs["token_ids"] != probe_rows().batch(0)[0]["token_ids"]).any()
    for place in range(16):
        row, positions, tokens = probe_rows().example(16 + place)
        count = len(positions)
        np.testing.assert_array_equal(inputs["token_ids"][place, : len(row)], row)
        assert inputs["padding_mask"][place].sum() == len(row)
        np.testing.assert_array_equal(inputs["mask_positions"][place, :count], positions)
        np.testing.assert_array_equal(labels[place, :count], tokens)
        np.testing.assert_allclose(weights[place], [1 / count] * count + [0] * (LENGTH - count))


def test_parts_of_several_devices_are_the_batch():
    whole = probe_rows().batch(2)
    halves = [probe_rows().shard(part, 2).batch(2) for part in range(2)]
    for name in whole[0]:
        both = np.concatenate([half[0][name] for half in halves])
        np.testing.assert_array_equal(both, whole[0][name])


def test_rows_of_tests_are_no_rows_of_training():
    rows = probe_rows()
    trained = {tuple(rows.example(index)[0].tolist()) for index in range(400)}
    tested = {tuple(row) for name in TASKS for row in rows.test(name, 32, 4, 2).token_ids.tolist()}
    assert not trained & tested
