"""Findings of probes: paired differences by hand, Holm over the cells of a question."""

import numpy as np
import scipy.stats

from training.studies.probe.report import answer, questions, sentence, violations
from training.study.results import summarize

SHIFTS = {"absolute_position": 0.0, "first_of_two": -20.0, "majority": 0.0, "offset": 30.0}


def method(values, **more):
    """What is known of a method: a dictionary: task -> scores of all seeds, at 32 tokens."""
    scores = {
        (task, 32): summarize({"": dict(enumerate(found))}, None)[""]
        for task, found in values.items()
    }
    return {"scores": scores, **more}


def scores(seed, shifted):
    rng = np.random.default_rng(seed)
    return method(
        {task: (50 + s * shifted + rng.normal(size=5)).tolist() for task, s in SHIFTS.items()}
    )


METHODS = {
    "absolute": scores(0, 0),
    "tupe_a": scores(1, 1),
    "tupe_a_tied_cls": scores(2, 0),
    "shaw": scores(3, 0),
    "shaw:k=16": scores(4, 1),
    "qkr_4:k=16": scores(5, 1),
}


def test_questions_are_those_that_methods_can_answer():
    def pairs(*labels, tasks=tuple(SHIFTS)):
        return [(one.baseline, one.other) for one in questions(labels, tasks)]

    of_absolute, of_cls, of_clips = (
        ("absolute", "tupe_a"),
        ("tupe_a_tied_cls", "tupe_a"),
        ("shaw", "shaw:k=16"),
    )
    assert pairs(*METHODS) == [of_absolute, of_cls, of_clips]
    assert pairs(*METHODS, tasks=["offset"]) == [of_absolute, of_clips]
    assert pairs("none", "tupe_a") == []
    # the same method with the same other options, and nothing that is not clipped
    assert pairs("shaw", "shaw:cls=untied:k=4", "shaw:k=null") == []
    untied = ("shaw:cls=untied", "shaw:cls=untied:k=4")
    assert pairs("shaw", *untied) == [untied]


def test_differences_are_those_of_a_paired_t_test_with_holm_by_hand():
    for question in questions(list(METHODS), list(SHIFTS)):
        found = answer(question, METHODS)
        tasks = tuple(x for x in SHIFTS if x != "offset") if "CLS" in question.title else SHIFTS
        assert [task for task, _ in found] == [task for task in SHIFTS if task in tasks]
        p_values = {}
        for task, length in found:
            one, two = (
                list(METHODS[x]["scores"][task, length].values.values())
                for x in (question.baseline, question.other)
            )
            p_values[task] = scipy.stats.ttest_rel(two, one).pvalue
            np.testing.assert_allclose(
                found[task, length].difference.mean, np.mean(np.subtract(two, one)), atol=1e-12
            )
            np.testing.assert_allclose(found[task, length].p_value, p_values[task], rtol=1e-9)
        largest = 0
        for rank, task in enumerate(sorted(p_values, key=p_values.get)):
            largest = max(largest, min(1, (len(p_values) - rank) * p_values[task]))
            np.testing.assert_allclose(found[task, 32].adjusted_p, largest, rtol=1e-9)


def test_a_sentence_names_what_is_left_by_holm():
    untied, cls, _ = questions(list(METHODS), list(SHIFTS))
    told = sentence(untied, answer(untied, METHODS))
    assert told.startswith(
        "Do untied positions help? tupe_a scores higher than absolute: offset at 32 (+29"
    )
    assert "tupe_a scores lower than absolute: first_of_two at 32 (-1" in told
    assert "majority" not in told
    same = {**METHODS, "tupe_a": METHODS["tupe_a_tied_cls"]}
    assert sentence(cls, answer(cls, same)).endswith(
        "No difference of tupe_a to tupe_a_tied_cls is left by Holm."
    )


def test_a_sentence_says_where_nothing_can_be_judged():
    def told(one, other):
        methods = {"absolute": method({"offset": one}), "tupe_a": method({"offset": other})}
        (question,) = questions(list(methods), ["offset"])
        return sentence(question, answer(question, methods))

    assert told([10.0], [99.0]) == "Do untied positions help? One seed of each cannot tell."
    without = told([50.0] * 5, [100.0] * 5)
    assert without.endswith("Without a spread to judge by: offset at 32 (+50.0).")
    assert told([50.0] * 5, [50.0] * 5).endswith("is left by Holm.")


def test_the_mean_over_random_rows_may_be_above_a_bound_by_chance_alone():
    bounds = {kind: {("offset", 32): 20.0} for kind in ("nowhere", "trained", "everywhere")}

    def told(order, values):
        mine = method({"offset": values}, order=order, sees_order=True)
        return violations({"mine": mine}, bounds)

    assert not told("everywhere", [100.0] * 5)
    assert not told("trained", [19.0, 22.0, 21.0, 23.0, 18.0])
    assert not told("trained", [90.0])  # one seed is one draw of the rows
    assert not told("trained", [50.0] * 2)  # and two may agree by chance
    assert told("trained", [50.0] * 5)
    (line,) = told("trained", [40.0, 41.0, 42.0, 41.0, 40.0])
    assert line.startswith("mine cannot score above 20.00 % in offset at 32 tokens")
    assert not told("nowhere", [20.0, 3.0])
    (line,) = told("nowhere", [20.5, 3.0])
    assert line.endswith("scored 20.50 %.")
