"""A small task in the format of SQuAD, tiny presets, and runs of the command on them."""

import json
import pathlib
import random

import commands
import keras

from keras_tupe import TupeBackbone, TupeMaskedLM, TupeMaskedLMPreprocessor, TupeTokenizer
from keras_tupe.data import read_squad, squad_windows

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
FILLERS = ["the", "farm", "was", "near", "a", "river", "and", "people", "lived", "there"]
KINDS = {
    "color": ["red", "green", "dark blue"],
    "animal": ["cat", "dog", "old horse"],
    "number": ["one", "two", "three"],
}
WORDS = [*SPECIAL, *FILLERS, "which", *KINDS]
WORDS += [word for names in KINDS.values() for name in names for word in name.split()]
LIMIT = 24  # rows of the presets' position tables
# of a model that has seen nothing: a high rate, few rows
OPTIONS = {
    "length": 40,
    "doc_stride": 12,
    "max_question_length": 4,
    "epochs": 1,
    "batch_size": 8,
    "learning_rate": 0.01,
    "dropout": 0.0,
    "xla": "off",
}


def article(rng, number, most=20):
    """Returns a paragraph that names a thing of each kind, and a question about each."""
    things = {kind: rng.choice(names) for kind, names in KINDS.items()}
    parts = rng.choices(FILLERS, k=rng.randint(5, most))
    for thing in things.values():
        parts.insert(rng.randrange(len(parts) + 1), thing)
    context = " ".join(parts)
    answers = {kind: {"text": x, "answer_start": context.index(x)} for kind, x in things.items()}
    entries = [
        {"id": f"{number}-{kind}", "question": f"Which {kind}?", "answers": [answer]}
        for kind, answer in answers.items()
    ]
    return {"title": "Farms", "paragraphs": [{"context": context, "qas": entries}]}


def write_questions(path, articles=4, seed=0, **options):
    """Writes a file with three questions to each article; returns its path."""
    rng = random.Random(seed)
    content = {"version": "1.1", "data": [article(rng, n, **options) for n in range(articles)]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def windows_of(path, length=40):
    """Returns the `SquadWindows` of a file's questions, as a command with `OPTIONS` makes them."""
    sizes = {name: OPTIONS[name] for name in ("doc_stride", "max_question_length")}
    return squad_windows(read_squad(path), TupeTokenizer(WORDS).op, length, **sizes)


def save_preset(folder, position="tupe_r", text=True, sizes=(1, 2, 16, 32), **options):
    """Writes a preset of a new, tiny masked language model; returns the folder."""
    keras.utils.set_random_seed(0)
    options = {"max_sequence_length": LIMIT, "initializer_range": 0.2, **options}
    backbone = TupeBackbone(len(WORDS), *sizes, position=position, **options)
    preprocessor = None
    if text:
        preprocessor = TupeMaskedLMPreprocessor(
            TupeTokenizer(WORDS), sequence_length=LIMIT, segments=backbone.num_segments > 0
        )
    TupeMaskedLM(backbone, preprocessor).save_to_preset(str(folder))
    return folder


def arguments(preset, train, dev, out, **options):
    """Returns a command line: `OPTIONS` with changes; `None` leaves one out."""
    given = {"train": train, "valid": dev, "out": out, **OPTIONS, **options}
    return commands.words_of(*([] if preset is None else [preset]), **given)


def run(preset, train, dev, out, **options):
    """Runs in this process; returns `study.json`, and what was printed to both streams."""
    ended = commands.run("finetune squad", *arguments(preset, train, dev, out, **options))
    assert ended.code == 0, ended.err
    return read(out / "study.json"), ended.out, ended.err


def failure(preset, train, dev, out, **options):
    """Runs in vain; returns the sentences, after a check that no run was left behind."""
    before = runs_in(out)
    message = commands.refusal("finetune squad", *arguments(preset, train, dev, out, **options))
    assert runs_in(out) == before
    return message


def runs_in(out):
    """Names of the runs in a folder."""
    return [] if out is None else sorted(path.name for path in pathlib.Path(out).glob("seed-*"))


def read(path):
    """Returns the content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))
