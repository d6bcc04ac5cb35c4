"""A small experiment of nobody's paper, and results made up in the form that commands write."""

import dataclasses
import json
import tomllib

from ablation_cases import finish
from run_cases import make_run

from keras_tupe import positions
from training.command.variant import parse
from training.machine.cost import TWO_CORES
from training.pretrain.settings import Settings as PretrainSettings
from training.studies.papers.definition import find
from training.studies.papers.plan import ABLATION, SquadCell, make_plan
from training.studies.papers.settings import Settings

TEXT = """
question = "Does it matter who asks?"
protocol = ["Everything was done twice."]
unknown = ["Who did it."]
variants = [
    { name = "old", position = "absolute" },
    { name = "new", position = "qkr_4:k=3" },
]

[source]
paper = "Nobody. On Nothing. 1999."
url = "https://example.org"
place = "Table 7"

[[paper]]
title = "Points of a task"
source = "Nobody 1999, Table 7"
headline = "Mean"
baseline = "old"
columns = [{ name = "Mean", metric = "mean of all" }, { name = "EM", metric = "exact match" }]
rows = [
    { name = "old", position = "absolute", values = [71.25, 60] },
    { name = "new", position = "qkr_4:k=3", values = [72.5, 61] },
]

[disagreement]
text = "Nobody agrees."
contrasts = [{ against = "old", position = "qkr_4:k=3", baseline = "absolute" }]

[[disagreement.claims]]
who = "Nobody"
against = "old"
table = "Points of a task"
row = "new"
baseline = "old"
column = "Mean"

[[disagreement.claims]]
who = "Somebody"
against = "old"
table = "Points of a task"
row = "old"
baseline = "old"
column = "Mean"

[scales.laptop]
precision = "float32"
differs = ["It is smaller."]

[scales.laptop.pretrain]
size = "tiny"
length = 16
vocabulary_size = 160
seeds = 3
steps = 300
warmup_steps = 30
batch_size = 4
learning_rate = 1e-3
valid_batches = 2

[scales.laptop.glue]
tasks = ["rte", "mrpc"]
protocol = "huang"
learning_rates = [1e-4]
seeds = 1
epochs = 1
length = 16
limit = 8
"""
LENGTHS = """
[scales.laptop.squad]
lengths = [24, 32]
doc_stride = 8
max_question_length = 9
epochs = 1
learning_rate = 1e-4
seeds = 2
batch_size = 4
"""


def write(folder, text=TEXT, name="nobody"):
    """Writes the file of an experiment; returns its path."""
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def without(text, start, end=None):
    """Returns a text without what is from `start` to before `end`."""
    first = text.index(start)
    return text[:first] + ("" if end is None else text[text.index(end, first) :])


def lengths_text():
    """The experiment with SQuAD at two lengths in place of GLUE, of the second method alone."""
    text = without(TEXT, "[scales.laptop.glue]") + LENGTHS
    text = without(text, "[disagreement]", "[scales.laptop]")
    return without(text, '    { name = "old", position', '    { name = "new", position')


def graft_text():
    """The experiment as a graft."""
    text = without(TEXT, "[scales.laptop.pretrain]") + LENGTHS
    text = without(text, "[disagreement]", "[scales.laptop]")
    return text + '\n[scales.laptop.preset]\nsize = "tiny"\nlength = 24\nvocabulary_size = 160\n'


def plan_of(path, **settings):
    """Returns the `Plan` of a file for two cores, where nothing is given."""
    settings = Settings(name=str(path), scale="laptop", **settings)
    return make_plan(find(str(path)), settings, TWO_CORES)


def write_json(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def make_preset(folder, position="absolute", options=None, length=24, **more):
    """Writes the small files of a preset, without weights."""
    config = {"num_layers": 2, "hidden_dim": 128, "intermediate_dim": 512, "vocabulary_size": 160}
    config |= {"position": position}
    config |= {"position_options": positions.get(position).resolve(options)}
    config |= {"max_sequence_length": length, "num_heads": 4, **more}
    write_json(folder / "config.json", {"registered_name": "keras_tupe>", "config": config})
    write_json(folder / "tokenizer.json", {"config": {"kind": "wordpiece"}})
    write_json(folder / "metadata.json", {"parameter_count": 1000})
    return folder


def make_runs(out, plan, shifts, glue=None):
    """Makes up finished runs of an ablation.

    Args:
        out: folder of the experiment.
        plan: its `Plan`.
        shifts: dictionary: position -> list with what each seed's losses are higher by.
        glue: dictionary: position -> list with each seed's score of RTE; MRPC is a point higher.
    """
    values = plan.scale.pretrain
    for position, losses in shifts.items():
        variant = parse(position)
        for seed, shift in enumerate(losses):
            folder = out / ABLATION / variant.folder / f"seed-{seed}" / "pretrain"
            make_run(folder, steps=values.steps, shift=shift)
            settings = PretrainSettings(
                position=variant.position,
                position_options=json.dumps(variant.options),
                seed=seed,
                out=str(folder),
                **{name: getattr(values, name) for name in ("steps", "size", "batch_size")},
            )
            record = {"command": "c", "commit": "abc", "backend": "tensorflow"}
            record["settings"] = dataclasses.asdict(settings)
            del record["settings"]["given"]
            record["data"] = {"length": plan.scale.length, "rows_hash": "1"}
            write_json(folder / "settings.json", record)
            make_preset(folder / "preset", variant.position, variant.options)
            if glue is not None:
                path = folder.parent / "glue" / "study.json"
                write_json(path, glue_results(glue[position][seed]))
    finish(out / ABLATION)


def glue_results(score):
    """What `finetune glue` writes."""
    columns = {"rte": score, "mrpc": score + 1}
    return {
        "command": "g",
        "commit": "abc",
        "seconds": 60.0,
        "changes": ["seeds 1, not 5"],
        "tasks": {
            task: {"metric": "accuracy", "columns": {task: {"score": value}}}
            for task, value in columns.items()
        },
        "average": score + 0.5,
    }


def make_squad(out, position, run, length, values):
    """Makes up what `finetune squad` writes; EM is 10 points below F1."""
    content = {"command": "s", "commit": "abc", "seconds": 30.0, "changes": []}
    for name, shift in (("f1", 0), ("exact_match", -10)):
        found = [value + shift for value in values]
        content[name] = {"values": found, "mean": sum(found) / len(found)}
    write_json(out / SquadCell(position, run, length).folder / "study.json", content)


def entries(text=TEXT):
    """The experiment as TOML gives it."""
    return tomllib.loads(text)
