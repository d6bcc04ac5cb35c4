import json

import experiment_cases as cases
import pytest
from run_cases import cells

from training.studies.ablation.results import LOSS
from training.studies.papers import report as papers_report
from training.studies.papers.definition import find
from training.studies.papers.results import collect_results, verdict
from training.study.report import plain

BASE, NEW = "absolute", "qkr_4:k=3"


@pytest.fixture
def plan(tmp_path):
    return cases.plan_of(cases.write(tmp_path), out=str(tmp_path / "out"))


def report(out, plan, **overrides):
    """Makes a report; returns the text, the JSON and what it is made of."""
    results = collect_results(plan, out)
    found = papers_report.report(plan, results, overrides)
    found.pictures["study.png"](out / "study.png")
    return (
        "\n\n".join(filter(None, found.parts)),
        json.loads(json.dumps(plain(found.numbers))),
        results,
    )


def make_runs(out, plan, glue_shift=(1.2, 1.3, 1.4), shift=-0.5):
    glue = {BASE: [60.0, 61.0, 62.0]}
    glue[NEW] = [a + b for a, b in zip(glue[BASE], glue_shift, strict=True)]
    losses = {BASE: [0.0, 0.1, 0.2], NEW: [shift, shift + 0.13, shift + 0.2]}
    cases.make_runs(out, plan, losses, glue)


def sections(text):
    """Returns a dictionary: heading -> text below it."""
    parts = text.split("\n## ")[1:]
    return {part.split("\n")[0]: part.partition("\n")[2] for part in parts}


def test_the_papers_numbers_and_ours_are_in_different_tables(plan, tmp_path):
    make_runs(tmp_path / "out", plan)
    text, content, _ = report(tmp_path / "out", plan)
    found = sections(text)
    theirs, ours = found["Theirs: Nobody 1999, Table 7"], found["Ours: nobody at scale laptop"]
    assert cells(theirs)[1:] == [["old", "71.25", "60"], ["new", "72.50", "61"]]
    assert "71.25" not in ours
    assert "72.5" not in ours
    assert "60.50" not in theirs
    assert content["paper"]["tables"][0]["rows"][0]["values"] == [71.25, 60]
    assert "71.25" not in json.dumps(content["ours"])
    assert (tmp_path / "out" / "study.png").read_bytes().startswith(b"\x89PNG")


def test_our_numbers_are_means_over_pretrainings_with_their_metric(plan, tmp_path):
    make_runs(tmp_path / "out", plan)
    text, content, results = report(tmp_path / "out", plan)
    rows = cells(sections(text)["Ours: nobody at scale laptop"])
    header = ["method", "as in the paper", "pre-trainings", f"{LOSS} (nats)", "masked accuracy (%)"]
    header += ["RTE (accuracy, %)", "MRPC (f1, %)", "GLUE average (%)"]
    assert rows[0] == header
    assert rows[1][:3] == [BASE, "old", "3"]
    assert rows[1][5:] == ["61.00 +- 2.48", "62.00 +- 2.48", "61.50 +- 2.48"]
    assert rows[2][:2] == [NEW, "new"]
    assert results.headline == "GLUE average"
    assert rows[3][1] == "GLUE average less that of absolute"
    assert rows[4] == [NEW, "+1.30", "+1.05 to +1.55", "0.002", "higher"]
    average = content["ours"]["scores"]["GLUE average"]["methods"][NEW]
    assert average["difference"]["mean"] == pytest.approx(1.3)


def test_what_differs_is_told_by_the_file_the_command_line_and_the_runs(plan, tmp_path):
    make_runs(tmp_path / "out", plan)
    text, content, _ = report(tmp_path / "out", plan, steps=7)
    told = sections(text)["What differs from the paper"]
    for sentence in (
        "It is smaller.",
        "asked for steps 7, which is not this scale's",
        "Rows of 16 tokens of a vocabulary of 160",
        "Reported by the runs: seeds 1, not 5.",
    ):
        assert sentence in told
    assert len(content["differs"]) == 4
    assert "Who did it." in sections(text)["What is not known of the paper"]


@pytest.mark.parametrize(
    ("shifts", "expected"),
    [
        ((1.2, 1.3, 1.25), "it holds Nobody +1.25, and not Somebody +0.00"),
        ((-0.1, 0.1, 0.01), "it holds Somebody +0.00, and not Nobody +1.25"),
        ((0.0, 3.0, 1.0), "it holds what all report (Nobody +1.25, Somebody +0.00)"),
        ((9.0, 9.1, 9.2), "it holds none of what is reported"),
        ((0.7,), "+0.70 in one pair of pre-trainings, which tells nothing of the spread"),
        ((9.0, 9.0), "+9.00 in each of 2 pairs of pre-trainings, no spread to judge by"),
    ],
)
def test_the_disagreement_is_judged_by_the_interval(plan, tmp_path, shifts, expected):
    glue = {BASE: [60.0] * len(shifts), NEW: [60.0 + shift for shift in shifts]}
    cases.make_runs(tmp_path / "out", plan, {name: [0.0] * len(shifts) for name in glue}, glue)
    text, content, _ = report(tmp_path / "out", plan)
    (found,) = content["disagreement"]["ours"]
    assert expected in found["text"]
    assert found["text"].startswith("qkr_4:k=3 less absolute: ")
    told = sections(text)["Where the papers disagree"]
    assert found["text"] in told
    p_value = text.split("| p (Holm) |")[1].splitlines()[2].split("|")[4].strip()
    assert (p_value == "-") == (len(set(shifts)) == 1)  # one pair, or pairs without spread
    assert "What ours cannot say" in told
    assert cells(told)[1][:3] == ["Nobody", "new less old, Mean", "+1.25"]


def test_a_contrast_that_was_not_run_says_nothing(plan, tmp_path):
    cases.make_runs(tmp_path / "out", plan, {BASE: [0.0, 0.1]}, {BASE: [60.0, 61.0]})
    (found,) = verdict(plan.experiment, collect_results(plan, tmp_path / "out"))
    assert found["text"] == "qkr_4:k=3 less absolute: not run, so nothing can be said."
    text, content, _ = report(tmp_path / "out", plan)
    assert content["disagreement"]["ours"][0]["mean"] is None
    assert "less that of" not in text


def test_without_tasks_the_loss_and_the_steps_are_compared(tmp_path):
    text = cases.without(cases.TEXT, "[scales.laptop.glue]")
    plan = cases.plan_of(cases.write(tmp_path, text), out=str(tmp_path / "out"))
    cases.make_runs(tmp_path / "out", plan, {BASE: [0.0, 0.1], NEW: [-0.5, -0.3]})
    text, content, results = report(tmp_path / "out", plan)
    assert results.headline == LOSS
    shares = content["ours"]["share_of_steps_to_baseline"]
    assert shares[BASE]["mean"] == pytest.approx(1.0)
    assert 0.2 < shares[NEW]["mean"] < 0.7
    rows = cells(sections(text)["Ours: nobody at scale laptop"])
    assert [rows[-2][:2], rows[-1][0]] == [[BASE, "100%"], NEW]


def test_lengths_are_compared_with_the_first(tmp_path):
    plan = cases.plan_of(cases.write(tmp_path, cases.lengths_text()), out=str(tmp_path / "out"))
    out = tmp_path / "out"
    cases.make_runs(out, plan, {NEW: [0.0, 0.1, 0.2]})
    for seed in range(3):
        cases.make_squad(out, NEW, f"seed-{seed}", 24, [50.0 + seed, 52.0 + seed])
        cases.make_squad(out, NEW, f"seed-{seed}", 32, [50.5 + 1.1 * seed])
    text, _, results = report(out, plan)
    assert list(results.summaries) == ["SQuAD EM", "SQuAD F1"]
    found = results.summaries["SQuAD F1"]
    assert found[f"{NEW}, 24 tokens"].values == {0: 51.0, 1: 52.0, 2: 53.0}
    assert found[f"{NEW}, 24 tokens"].difference is None
    assert found[f"{NEW}, 32 tokens"].difference.mean == pytest.approx(-0.4)
    rows = cells(sections(text)["Ours: nobody at scale laptop"])
    assert rows[1][:3] == [f"{NEW}, 24 tokens", "new", "3"]


def test_a_graft_is_compared_over_runs_of_fine_tuning(tmp_path):
    plan = cases.plan_of(cases.write(tmp_path, cases.graft_text()), out=str(tmp_path / "out"))
    for position, length, values in (
        (BASE, 24, [50, 51]),
        (NEW, 24, [52, 53]),
        (NEW, 32, [54, 55]),
    ):
        cases.make_squad(tmp_path / "out", position, "preset", length, values)
    text, content, results = report(tmp_path / "out", plan)
    assert results.unit == content["ours"]["pairs_are"] == "runs of fine-tuning"
    assert results.summaries["SQuAD F1"][f"{NEW}, 32 tokens"].difference.mean == 4.0
    assert content["ours"]["pretraining"] is None
    assert "ablation/study.md" not in text


def test_results_that_are_missing_or_torn_are_named(tmp_path):
    plan = cases.plan_of(cases.write(tmp_path, cases.graft_text()), out=str(tmp_path / "out"))
    with pytest.raises(ValueError, match="absolute, 24 tokens, preset; qkr_4:k=3, 24 tokens"):
        collect_results(plan, tmp_path / "out")
    cases.make_squad(tmp_path / "out", BASE, "preset", 24, [50])
    missing = [f"{NEW}, {length} tokens, preset" for length in (24, 32)]
    assert collect_results(plan, tmp_path / "out").unfinished == missing
    path = next((tmp_path / "out").rglob("study.json"))
    path.write_text(path.read_text()[:20])
    with pytest.raises(ValueError, match="must be what it wrote"):
        collect_results(plan, tmp_path / "out")


@pytest.mark.slow  # draws
def test_every_experiment_of_the_package_has_a_picture_of_its_tables(tmp_path):
    from training.studies.papers.picture import draw

    plan = cases.plan_of(cases.write(tmp_path), out=str(tmp_path / "out"))
    make_runs(tmp_path / "out", plan)
    results = collect_results(plan, tmp_path / "out")
    for name in ("tupe-table1", "huang-table4-clip"):
        other = type(plan)(**{**vars(plan), "experiment": find(name)})
        draw(tmp_path / f"{name}.png", other, results)
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
