import dataclasses
import json
import shlex

import experiment_cases as cases
import numpy as np
import prepare_cases
import pytest

from keras_tupe.data import GLUE_TASKS, PreparedRows, seal, write_shard
from keras_tupe.trainer import step_flops
from training.command.settings import parse
from training.command.variant import parse as parse_variant
from training.convert.settings import Settings as ConvertSettings
from training.finetune.cost import glue_cost, squad_cost
from training.finetune.tasks import glue as finetune_glue_settings
from training.finetune.tasks import squad as finetune_squad_settings
from training.machine.cost import H200, TWO_CORES, Cost, Device, pretraining, slower
from training.pretrain.settings import Settings as PretrainSettings
from training.studies.ablation import settings as ablate_settings
from training.studies.ablation.tasks import tasks_of
from training.studies.papers import questions
from training.studies.papers.definition import SCALES, Glue, Squad, find, names
from training.studies.papers.plan import GRAFTED, make_plan, nominal_device, plan_text
from training.studies.papers.settings import Settings

HOURS = {"gpu-day": 24.0, "gpu-hour": 1.0}
PAPERS = [name for name in names() if find(name).tables]
SLOW = Device("a snail", 1e9, 0.5, 0.0, 0.0)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Folders of prepared rows by length; the longer rows are short ones in a line."""
    folder = tmp_path_factory.mktemp("rows")
    source = prepare_cases.write_text(folder / "corpus.txt", prepare_cases.documents())
    options = ("--length", "128", "--valid", "0.3", "--vocabulary-size", "160")
    found = {128: prepare_cases.run(folder / "128", source, options=options)}
    short = {split: PreparedRows(found[128], split) for split in ("train", "valid")}
    record = prepare_cases.record(found[128])
    for length in (256, 512):
        found[length] = folder / str(length)
        found[length].mkdir()
        joined = {
            split: np.concatenate([part[range(4)]] * 4).reshape(-1, length)
            for split, part in short.items()
        }
        for split, block in joined.items():
            write_shard(found[length], split, 0, block, record["vocabulary"]["size"])
        file = record["vocabulary"]["file"]
        (found[length] / file).write_bytes((found[128] / file).read_bytes())
        facts = {k: v for k, v in record.items() if k not in ("format", "sha256")}
        splits = {s: {**record["splits"][s], "rows": len(block)} for s, block in joined.items()}
        seal(found[length], {**facts, "length": length, "splits": splits})
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What the commands' parsers look for besides rows: folders and files, without content."""
    folder = tmp_path_factory.mktemp("files")
    for task in GLUE_TASKS.values():
        (folder / "glue" / task.folder).mkdir(parents=True)
        (folder / "glue" / task.folder / "train.tsv").write_text("")
    for name in ("train.json", "dev.json"):
        (folder / name).write_text("{}")
    return folder


def settings_of(name, scale, rows, files, out):
    """Returns the settings of a command line that names all that the experiment needs."""
    chosen = find(name).scales[scale]
    words = [name, "--scale", scale, "--out", str(out)]
    if chosen.pretrain is not None:
        words += ["--data", str(rows[chosen.length])]
    if chosen.glue is not None:
        words += ["--glue", str(files / "glue")]
    if chosen.squad is not None:
        words += ["--squad-train", str(files / "train.json")]
        words += ["--squad-dev", str(files / "dev.json")]
    if chosen.preset is not None:
        sizes = {"length": chosen.length, "position": chosen.positions[0]}
        words += ["--preset", str(cases.make_preset(out.with_name(f"{out.name}-preset"), **sizes))]
    return parse(Settings, words)


def check_command(command, out):
    """Parses a command line as its command does; what is wrong with it ends the test."""
    if command.module == "training.convert":
        options = parse(ConvertSettings, command.words)
        position = parse_variant(options.graft)
        cases.make_preset(out / GRAFTED / "preset", position.position, options.method_options())
    elif command.module == "training.finetune":
        task, *words = command.words
        assert task == "squad"
        preset = out / words[0]
        if not preset.exists():  # of a pre-training, whose method this is
            run = parse_variant(preset.parts[-4].replace(".", ":"))
            cases.make_preset(preset, run.position, run.options, length=0)
        parse(finetune_squad_settings.Settings, words)
    else:
        assert command.module == "training.study"
        settings = parse(ablate_settings.Settings, command.words[1:])
        for task in tasks_of(settings):
            kinds = {"glue": finetune_glue_settings, "squad": finetune_squad_settings}
            for variant in settings.variants:
                preset = out / variant.folder / "preset"
                length = PreparedRows(settings.data).length
                cases.make_preset(preset, variant.position, variant.options, length)
                name, *words = task.words(preset, out / "scored", variant)
                parsed = parse(kinds[name].Settings, words)
                assert parsed.precision == settings.precision


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", PAPERS)
def test_every_command_of_a_plan_is_accepted_by_its_command(name, scale, rows, files, tmp_path):
    settings = settings_of(name, scale, rows, files, tmp_path / "out")
    plan = make_plan(find(name), settings, nominal_device(scale))
    for command in plan.commands:
        check_command(command, tmp_path / "out")


def test_rows_of_another_length_are_refused(rows, tmp_path, capsys):
    for folder, expected in (
        (rows[256], "`--length 128`. Received: rows of 256 tokens"),
        (tmp_path, "--data: "),
    ):
        with pytest.raises(SystemExit):
            parse(Settings, ["tupe-table1", "--data", str(folder)])
        assert expected in capsys.readouterr().err


@pytest.mark.parametrize("name", PAPERS)
def test_each_scale_takes_about_as_long_as_its_name_says(name):
    experiment = find(name)
    hours = {
        scale: make_plan(
            experiment, Settings(name=name, scale=scale), nominal_device(scale)
        ).cost.seconds
        / 3600
        for scale in SCALES
    }
    for scale, expected in HOURS.items():
        assert expected / 2 <= hours[scale] <= 1.25 * expected
    assert 0.75 <= hours["laptop"] <= 2.0


def test_losses_by_position_are_asked_of_the_runs_of_causal_models():
    experiment = find("causal-lengths")
    plan = make_plan(experiment, Settings(name=experiment.name), nominal_device("laptop"))
    (command,) = plan.commands
    words = " ".join(command.words)
    assert "--objective causal_lm" in words
    assert "--long-rows LONG_ROWS" in words
    assert experiment.scales["laptop"].long_rows.times == 4
    # the head is at every position: a masked model of these sizes would cost half of it
    masked = dataclasses.replace(experiment.scales["laptop"].pretrain, objective="masked_lm")
    costs = [
        pretraining(one, 64, 2000, "rope", SLOW).flops
        for one in (masked, experiment.scales["laptop"].pretrain)
    ]
    assert 1.5 < costs[1] / costs[0] < 2.5
    assert 0.75 <= plan.cost.seconds / 3600 <= 2.0


def test_long_rows_must_be_so_many_times_as_long(rows, capsys):
    words = ["causal-lengths", "--scale", "gpu-hour", "--data", str(rows[128]), "--plan"]
    parse(Settings, [*words, "--long-rows", str(rows[512])])
    with pytest.raises(SystemExit):
        parse(Settings, [*words, "--long-rows", str(rows[256])])
    assert "--long-rows must be rows of 512 tokens at this scale" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parse(Settings, ["tupe-table1", "--plan", "--long-rows", str(rows[512])])
    assert "tupe-table1 does not use --long-rows" in capsys.readouterr().err


def test_the_assumptions_are_those_that_are_told():
    assert (H200.utilisation, H200.peak_flops) == (0.35, 989e12)
    text = plan_text(make_plan(find("tupe-table1"), Settings(name="tupe-table1"), H200), H200)
    assert "at 35% of 989 TFLOP/s" in text
    assert questions() == {name: find(name).question for name in names()}


def test_pretraining_costs_its_steps_and_a_third_of_its_validations():
    values = PretrainSettings(size="tiny", steps=600, batch_size=4, valid_batches=6)
    sizes = {"num_layers": 2, "hidden_dim": 128, "intermediate_dim": 512, "vocabulary_size": 90}
    one = step_flops(**sizes, batch_size=4, length=16, num_slots=3)
    cost = pretraining(values, 16, 90, "tupe_r", SLOW)
    assert (cost.runs, cost.tokens) == (1, 600 * 4 * 16)
    assert cost.flops == pytest.approx(one * (600 + 20 * 6 / 3))
    assert cost.seconds == pytest.approx(cost.flops / 5e8)
    idle = dataclasses.replace(SLOW, peak_flops=1e30, step_seconds=0.5, start_seconds=7.0)
    assert pretraining(values, 16, 90, "tupe_r", idle).seconds == pytest.approx(0.5 * 640 + 14)


def test_slow_methods_take_longer_for_the_same_operations():
    values = PretrainSettings(size="tiny", steps=10, batch_size=4, valid_batches=1)
    fast, slow = (pretraining(values, 512, 90, name, SLOW) for name in ("absolute", "qkr_3:k=8"))
    assert slow.flops == fast.flops
    assert slow.seconds / fast.seconds == pytest.approx(slower("qkr_3", 512)) == 3.28
    assert slower("qkr_3", 320) == pytest.approx((1.83 + 3.28) / 2)
    assert (slower("qkr_3", 64), slower("qkr_3", 704)) == (1.83, 3.28)


def test_glue_costs_every_rate_and_seed_of_every_task():
    one = Glue(
        tasks=["cola"], protocol="tupe", learning_rates=[1e-4], seeds=1, epochs=2, length=128
    )

    def cost_of(**changes):
        return glue_cost(dataclasses.replace(one, **changes), "tiny", "tupe_r", SLOW)

    cost = glue_cost(one, "tiny", "tupe_r", SLOW)
    assert cost.runs == 1
    assert cost.tokens == pytest.approx(2 * 8551 * 1.25 * 12)  # tokens of a row, bucketed
    assert cost_of(epochs=None).tokens == 5 * cost.tokens
    assert cost_of(limit=100).tokens == pytest.approx(3000)
    grid = cost_of(tasks=["cola", "rte"], learning_rates=[1e-4, 2e-4], seeds=3)
    assert grid == (cost_of(tasks=["rte"]) + cost).times(6)
    assert cost_of(length=10).tokens == 2 * 8551 * 10


def test_squad_is_cut_into_windows_where_rows_are_short():
    one = Squad(lengths=[512], doc_stride=64, epochs=2, learning_rate=1e-4, seeds=1, batch_size=32)
    long, short = (squad_cost(one, length, "tiny", "tupe_r", SLOW) for length in (512, 128))
    assert long.tokens == 2 * 87_599 * 1.25 * 176  # one window holds nearly every paragraph
    windows = short.tokens / (2 * 87_599 * 128)
    assert windows == pytest.approx(2.3, abs=0.1)  # 2.27 were counted on training files
    few = dataclasses.replace(one, limit=100, seeds=3)
    few = squad_cost(few, 512, "tiny", "tupe_r", SLOW)
    assert few.tokens == pytest.approx(3 * 2 * 100 * 1.25 * 176)
    assert few.runs == 3


def test_what_the_command_line_changes_is_in_the_plan(tmp_path):
    plan = cases.plan_of(cases.write(tmp_path), steps=10, seeds=2, tasks=("cola",))
    words = plan.commands[0].words
    assert words[words.index("--steps") + 1] == "10"
    assert words[words.index("--warmup-steps") + 1] == "1"  # the share of the scale, a tenth
    assert words[words.index("--seeds") + 1] == "2"
    assert words[words.index("--tasks") + 1 : words.index("--glue")] == ["cola"]
    assert plan.parts()["pre-training"].runs == 4
    assert plan.parts()["GLUE"].runs == 4
    assert plan.cost == sum(plan.parts().values(), Cost())


def test_lengths_are_fine_tuned_one_after_the_other(tmp_path):
    plan = cases.plan_of(cases.write(tmp_path, cases.lengths_text()), out="O")
    first, *others = plan.commands
    assert "--squad-train" not in first.words
    folders = [command.words[command.words.index("--out") + 1] for command in others]
    assert folders == [
        f"O/squad/qkr_4.k=3/seed-{seed}/length-{length}" for seed in range(3) for length in (24, 32)
    ]
    assert others[0].words[1] == "O/ablation/qkr_4.k=3/seed-0/pretrain/preset"
    assert plan.parts()["SQuAD"].runs == 3 * 2 * 2


def test_a_graft_compares_the_given_preset_at_its_own_length_only(tmp_path):
    plan = cases.plan_of(cases.write(tmp_path, cases.graft_text()), out="O", preset=None)
    put_in, *others = plan.commands
    assert shlex.split(str(put_in))[3:] == [
        "PRESET",
        "--graft",
        "qkr_4",
        "--out",
        "O/grafted/preset",
        "--graft-options",
        '{"k": 3}',
    ]
    assert put_in.folder == "grafted"
    unclipped = cases.graft_text().replace("qkr_4:k=3", "qkr_4")
    put_in_all = cases.plan_of(cases.write(tmp_path, unclipped, "unclipped"), out="O").commands[0]
    assert put_in_all.words[-2:] == ["--graft-length", "32"]  # else far distances were one
    pairs = [(one.words[1], one.words[one.words.index("--length") + 1]) for one in others]
    assert pairs == [("PRESET", "24"), ("O/grafted/preset", "24"), ("O/grafted/preset", "32")]


def test_a_preset_that_is_given_is_reckoned_with(tmp_path):
    path = cases.write(tmp_path, cases.graft_text())
    wide = cases.make_preset(tmp_path / "preset", hidden_dim=1280)
    assert json.loads((wide / "config.json").read_text())["config"]["hidden_dim"] == 1280
    assumed, read = (cases.plan_of(path, preset=preset) for preset in (None, str(wide)))
    assert read.cost.flops > 5 * assumed.cost.flops
    assert plan_text(read, TWO_CORES).count("training.finetune squad") == 3
