"""Comparisons of objectives: settings of equal FLOPs, and reports on runs that are made up."""

import dataclasses
import json

import numpy as np
import pretrain_cases
import pytest
import scipy.stats
from ablation_cases import finish, report, report_only
from commands import refusal
from run_cases import SIZES, cells, make_run, num_colors, picture

from keras_tupe import objectives
from training.command.settings import parse
from training.pretrain import settings as pretrain_settings
from training.studies.ablation import objectives_report
from training.studies.ablation.objectives import RunCost, ablations, flops_of_step, of_objective
from training.studies.ablation.settings import Settings
from training.study.folder import StudyFolder

VOCABULARY, LENGTH, BATCH, STEPS = 160, 16, 8, 100
T, S = BATCH * LENGTH, BATCH * 3  # tokens of a step, and masked slots
NAMES = ("masked_lm", "replaced_token")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return pretrain_cases.make_rows(tmp_path_factory.mktemp("rows"), vocabulary_size=VOCABULARY)


def words(rows, out, *more, objectives=NAMES):
    common = ("--size", "tiny", "--batch-size", BATCH, "--steps", STEPS, "--data", rows)
    found = (*common, "--out", out, "--positions", "absolute", "tupe_r", *more)
    return list(map(str, (*found, *(("--objectives", *objectives) if objectives else ()))))


def settings_of(rows, *more, objectives=NAMES):
    return parse(Settings, words(rows, "out", *more, objectives=objectives))


def step_by_hand(width, forward, vocabulary, slots, embedding=None):
    """The operations of a step of two layers, forward and backward."""
    e = embedding or width
    blocks = 2 * (6 * T * 4 * width**2 + 12 * T * LENGTH * width)
    blocks += 6 * (T + slots) * 2 * width * forward
    head = 6 * slots * (width * e + e * vocabulary)
    return blocks + head + 6 * T * (embedding or 0) * width


def replaced_by_hand(vocabulary):
    """Of a generator of a quarter of the widths, and of the head of a discriminator."""
    return step_by_hand(32, 128, vocabulary, S, 128) + step_by_hand(128, 512, 1, T)


def test_all_objectives_cost_what_the_first_one_does(rows):
    from keras_tupe.data import PreparedRows

    vocabulary = PreparedRows(str(rows)).vocabulary.size
    flops = [step_by_hand(128, 512, vocabulary, S), replaced_by_hand(vocabulary)]
    found = ablations(settings_of(rows))
    assert list(found) == list(NAMES)
    assert [flops_of_step(one) for one in found.values()] == pytest.approx(flops, rel=1e-12)
    assert [one.objective for one in found.values()] == list(NAMES)
    assert [one.steps for one in found.values()] == [100, round(100 * flops[0] / flops[1])]
    assert all(one.objectives == () for one in found.values())
    turned = ablations(settings_of(rows, objectives=NAMES[::-1]))
    steps = [turned[name].steps for name in NAMES]
    assert steps == [round(100 * flops[1] / flops[0]), 100]


def test_encoder_and_decoder_count(rows):
    found = ablations(settings_of(rows, objectives=("masked_lm", "seq2seq")))
    masked, both = (flops_of_step(one) for one in found.values())
    assert [one.steps for one in found.values()] == [100, round(100 * masked / both)]
    assert 2 < both / masked < 4
    assert all(one.problems() == [] for one in found.values())


def test_warm_up_and_validations_keep_their_share(rows):
    more = ("--warmup-steps", 20, "--valid-every", 40, "--steps", 400)
    for one in ablations(settings_of(rows, *more)).values():
        run = one.pretraining(one.variants[0], 0, "run")
        assert run.warmup_steps == round(20 * run.steps / 400)
        assert abs(run.valid_every - 40 * run.steps / 400) <= 2
        assert run.problems() == []
    run = ablations(settings_of(rows))["replaced_token"]  # nothing given: the usual shares
    run = run.pretraining(run.variants[0], 0, "run")
    assert run.warmup_steps == round(run.steps / 100)
    assert run.valid_every == round(run.steps / 20)


def test_an_option_goes_to_the_objectives_that_have_it(rows):
    found = ablations(settings_of(rows, "--generator-share", 0.5, "--mask-rate", 0.3))
    assert [one.generator_share for one in found.values()] == [0.25, 0.5]
    assert [one.mask_rate for one in found.values()] == [0.3, 0.3]
    assert "generator_share" not in found["masked_lm"].given
    names = ("causal_lm", "masked_lm")
    found = ablations(settings_of(rows, "--long-rows", rows, objectives=names))
    assert [one.long_rows for one in found.values()] == [str(rows), None]
    assert of_objective(settings_of(rows), "causal_lm").objective == "causal_lm"


def test_a_file_may_name_an_objective_and_its_options(rows):
    small = ("--config", "electra-small", "--size", "tiny", "--embedding-dim", "none")
    found = ablations(settings_of(rows, *small))
    assert [one.objective for one in found.values()] == list(NAMES)
    assert all(one.problems() == [] for one in found.values())


@pytest.mark.parametrize(
    ("names", "more", "parts"),
    [
        (("masked_lm", "replaced_tokn"), (), ["nearest is 'replaced_token'", "'replaced_tokn'"]),
        (("masked_lm",), (), ["two objectives or more", "Received: masked_lm"]),
        (("masked_lm", "masked_lm"), (), ["each once"]),
        (NAMES, ("--objective", "masked_lm"), ["--objective is for runs of one objective"]),
        (NAMES, ("--long-rows", "."), ["--long-rows is of no use to any of --objectives"]),
        (("masked_lm", "causal_lm"), ("--generator-share", 0.5), ["--generator-share is of no"]),
        (("masked_lm", "next_sentence"), (), ["next_sentence: Rows for pairs", "`--pairs next`"]),
        (NAMES, ("--blimp", ".", "--blimp-options", "--score word"), ["cannot have --score word"]),
        (("masked_lm", "seq2seq"), ("--blimp", "."), ["--objective seq2seq has no tasks yet"]),
        (NAMES, ("--positions", "absolut"), ["no positional method 'absolut'"]),
    ],
)
def test_mistakes_are_told_before_anything_begins(names, more, parts, rows, tmp_path):
    told = refusal("study", "ablation", *words(rows, tmp_path / "out", *more, objectives=names))
    assert "Received: " in told
    for part in parts:
        assert part in told
    assert len(set(told.splitlines())) == len(told.splitlines())
    assert not (tmp_path / "out").exists()


# === Reports on runs that are made up ===

SHIFTS = (0.0, 0.2, 0.1)
# percent of GLUE's column, by objective, method and seed
SCORES = {
    "masked_lm": {"absolute": (60.0, 61.0, 60.5), "tupe_r": (62.0, 63.5, 62.5)},
    "replaced_token": {"absolute": (63.0, 64.5, 63.4), "tupe_r": (61.0, 64.5, 63.0)},
}
STEPS_OF = {"masked_lm": 300, "replaced_token": 240}


def make(folder, objective, position, seed, score=None):
    """Writes what a run and its tasks leave."""
    steps, outputs = STEPS_OF[objective], tuple(objectives.get(objective).outputs)
    make_run(folder, steps, SHIFTS[seed], outputs=outputs)
    known = {"objective": objective, "position": position, "seed": seed, "steps": steps}
    settings = pretrain_settings.Settings(
        **known, warmup_steps=9, size="tiny", batch_size=BATCH, out=str(folder)
    )
    values = dataclasses.asdict(settings)
    values.pop("given")
    record = {"command": "python -m training.pretrain", "commit": "0123abc", "settings": values}
    record |= {"data": {"rows_hash": "abc", "length": LENGTH}, "backend": "tensorflow"}
    (folder / "settings.json").write_text(json.dumps(record))
    (folder / "preset").mkdir()
    config = {"config": SIZES}
    (folder / "preset" / "config.json").write_text(json.dumps(config))
    (folder / "preset" / "metadata.json").write_text('{"parameter_count": 7}')
    if score is not None:
        for task, found in (
            ("glue", {"tasks": {"sst2": {"columns": {"sst2": {"score": score}}}}, "average": 1}),
            ("blimp", {"overall": {"accuracy": score / 100}}),
        ):
            (folder.parent / task).mkdir()
            command = f"python -m training.{task} PRESET --data {task}"
            content = {"command": command, "seconds": 3.0, **found}
            (folder.parent / task / "study.json").write_text(json.dumps(content))
    return folder


def make_all(folder):
    """Two objectives, two methods, three seeds."""
    for objective, methods in SCORES.items():
        for position, scores in methods.items():
            for seed, score in enumerate(scores):
                run = folder / objective / position / f"seed-{seed}" / "pretrain"
                make(run, objective, position, seed, score)
    return finish(folder, objectives=True)


@pytest.fixture
def out(tmp_path):
    return make_all(tmp_path)


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """A folder with its report, the record, and what was printed."""
    out = make_all(tmp_path_factory.mktemp("objectives"))
    printed = report_only(out)
    return out, json.loads((out / "study.json").read_text()), printed


def test_scores_are_compared_by_seed_and_losses_are_not(reported):
    out, record, printed = reported
    text = (out / "study.md").read_text()
    assert text in printed
    assert record["objectives"] == list(NAMES)
    assert list(record["scores"]) == ["GLUE sst2", "BLiMP"]
    tables = text.partition("## Methods within")[0].split("\n## ")
    (sst2,) = [part for part in tables if part.startswith("GLUE sst2")]
    header, *lines = cells(sst2)
    assert header[:4] == ["method", "objective", "seeds", "GLUE sst2 (percent)"]
    assert header[4] == "score less masked_lm's"
    assert [line[:3] for line in lines] == [
        [method, name, "3"] for method in ("absolute", "tupe_r") for name in NAMES
    ]
    p_values = {}
    for method in ("absolute", "tupe_r"):
        base, ours = (np.array(SCORES[name][method]) for name in NAMES)
        expected = scipy.stats.ttest_rel(ours, base)
        summary = record["scores"]["GLUE sst2"][method]["replaced_token"]
        found = summary["difference"]
        assert found["mean"] == pytest.approx(np.mean(ours - base))
        assert found["p_value"] == pytest.approx(expected.pvalue, rel=1e-9)
        interval = expected.confidence_interval()
        np.testing.assert_allclose([found["low"], found["high"]], interval, rtol=1e-9)
        assert record["scores"]["GLUE sst2"][method]["masked_lm"]["difference"] is None
        p_values[method] = expected.pvalue
        row = next(line for line in lines if line[:2] == [method, "replaced_token"])
        assert row[3].startswith(f"{ours.mean():.2f} +- ")
        assert row[4].startswith(f"{np.mean(ours - base):+.2f} (")
    assert p_values["absolute"] < p_values["tupe_r"]
    adjusted = record["scores"]["GLUE sst2"]["absolute"]["replaced_token"]["adjusted_p"]
    assert adjusted == pytest.approx(2 * p_values["absolute"])  # of two in the table
    assert "There are 2 comparisons in a table." in text
    assert not [part for part in tables if "loss" in part.splitlines()[0]]
    assert "BLiMP asks each model in its own way" in text


def test_what_a_run_costs_is_in_the_table_and_the_record(reported):
    out, record, _ = reported
    text = (out / "study.md").read_text()
    costs = record["costs"]
    by_hand = (step_by_hand(128, 512, VOCABULARY, S), replaced_by_hand(VOCABULARY))
    for name, flops in zip(NAMES, by_hand, strict=True):
        steps = STEPS_OF[name]
        assert costs[name]["step_flops"] == pytest.approx(flops, rel=1e-12)
        assert costs[name]["flops"] == pytest.approx(steps * flops, rel=1e-12)
        assert costs[name]["seconds"] == steps / 2  # as the log says, without the tests
        assert costs[name]["tokens"] == steps * T
    header, *lines = cells(text.split("## What a run costs")[1].split("\n## ")[0])
    assert header[1] == "steps"
    assert [line[1] for line in lines] == ["300", "240"]
    share = costs["replaced_token"]["flops"] / costs["masked_lm"]["flops"]
    assert lines[1][5] == f"{share:.2%}"
    assert header[6] == "time of training"
    planned = objectives_report.cost_table(
        {"masked_lm": RunCost(3, 6, 7.0)}
    )  # before anything begins
    assert cells(planned)[1] == ["masked_lm", "3", "6", "7", "21", "100.00%"]


@pytest.mark.parametrize(("more", "is_equal"), [(0, True), (1, False)])
def test_equal_flops_are_promised_only_where_they_are(more, is_equal, reported, out):
    _, record, _ = reported
    first, other = (cost["step_flops"] for cost in record["costs"].values())
    steps = round(300 * first / other) + more
    assert record["equal_flops"] is (steps == STEPS_OF["replaced_token"])
    results = StudyFolder(out, "").results()
    for run in results.of("pretrain replaced_token"):
        run.shared["steps"] = steps
    text = _text(results)
    assert text.startswith(f"Objectives compared at {'equal' if is_equal else 'unequal'} FLOPs")
    assert ("All runs have the same model FLOPs" in text) is is_equal
    assert ("**The runs do not cost the same**" in text) is not is_equal


def _text(results):
    found = objectives_report.report(results, list(NAMES), "absolute")
    return "\n\n".join([found.title, *found.parts])


def test_the_picture_has_a_color_for_each_objective(reported):
    image = picture(reported[0] / "study.png")
    assert num_colors(image) > 100
    for color in ([0x1F, 0x77, 0xB4], [0xFF, 0x7F, 0x0E]):
        assert (np.abs(image - color).max(axis=-1) < 40).sum() > 200


def test_losses_and_accuracies_of_outputs_are_no_tasks(reported):
    out, record, _ = reported
    assert record["within"]["replaced_token"]["units"]["token loss"] == "nats"
    text = (out / "study.md").read_text().partition("## Methods within replaced_token")[2]
    header, line, *_ = cells(text.split("### Held-out loss")[1])
    parts = dict(zip(header, line, strict=True))
    assert parts["replaced-token accuracy"].startswith("50.00")
    loss = float(parts["held-out loss"].split()[0])
    assert float(parts["token loss"].split()[0]) == pytest.approx(loss / 2, abs=1e-4)
    assert "### token loss" not in text
    assert "### GLUE sst2" in text


def test_the_first_objective_is_the_baseline_and_what_is_missing_is_left_out(out):
    for path in out.glob("replaced_token/*/seed-2/blimp/run.json"):
        path.unlink()
    found = report(out, "--objectives", *NAMES[::-1])
    assert found["baseline"] == "replaced_token"
    assert report(out)["baseline"] == "replaced_token"  # as recorded
    values = found["scores"]["BLiMP"]["absolute"]["replaced_token"]["values"]
    assert list(values) == ["0", "1"]


def test_folders_of_one_objective_and_of_several_are_not_mixed(out, rows):
    told = refusal("study", "ablation", *words(rows, out, objectives=()))
    assert told.endswith("of the study 'ablation of objectives'")
    assert "made with other settings" in refusal("study", "ablation", *words(rows, out))


def test_without_common_scores_there_is_a_sentence_and_no_picture(out):
    for path in out.glob("masked_lm/*/*/*/study.json"):
        (path.parent / "run.json").unlink()
    assert report(out)["scores"] == {}
    assert "There is no score that all objectives have" in (out / "study.md").read_text()
    assert not (out / "study.png").exists()
