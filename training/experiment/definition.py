"""Definitions of experiments: what a paper did and found, and how to ask again at each scale."""

import dataclasses
import pathlib

from training.command import config_file
from training.command.kinds import nearest
from training.command.toml_file import read_toml
from training.experiment.definition_checks import check, with_defaults
from training.pretrain.settings import Settings as PretrainSettings

FOLDER = pathlib.Path(__file__).parents[1] / "configs" / "experiments"


@dataclasses.dataclass(frozen=True)
class PaperTable:
    """Numbers that a paper prints, and where.

    Attributes:
        title: heading of the table, with what was measured on which data.
        source: paper and number of its table.
        columns: list of `{"name", "metric"}`.
        rows: list of `{"name", "values"}`, as many values as columns, and `position`, the variant
            of ours that answers to the row, `""` if there is none.
        headline: name of the column that the picture shows.
        baseline: name of the row that the picture takes differences to.
    """

    title: str
    source: str
    columns: list
    rows: list
    headline: str
    baseline: str

    def value(self, row, column):
        """Returns a cell by the names of its row and column."""
        names = [entry["name"] for entry in self.columns]
        values = next(entry["values"] for entry in self.rows if entry["name"] == row)
        return values[names.index(column)]


@dataclasses.dataclass(frozen=True)
class Scale:
    """How large an experiment is.

    Attributes:
        name: one of `SCALES`.
        precision: of the work, as in `training.pretrain`.
        differs: list of sentences: what differs from the paper, and why.
        variants: list of `{"name", "position"}`, the first one the baseline.
        pretrain: settings of pre-training by name, or `None` if a preset is given instead. Besides
            those of `training.pretrain`: `length` of the rows, `vocabulary_size` that the plan
            assumes where there are no rows yet, and `seeds`, how many.
        preset: `{"size", "length", "vocabulary_size"}` that the plan assumes of a preset that is
            given, or `None`.
        glue, squad: settings of fine-tuning by name, or `None`.
    """

    name: str
    precision: str
    differs: list
    variants: list
    pretrain: dict | None = None
    preset: dict | None = None
    glue: dict | None = None
    squad: dict | None = None

    @property
    def positions(self):
        """The positional methods, as they are written on a command line."""
        return [variant["position"] for variant in self.variants]

    @property
    def baseline(self):
        """The method that the others are compared with."""
        return self.positions[0]

    @property
    def length(self):
        """Tokens of the sequences that the models were pre-trained on."""
        return (self.pretrain or self.preset)["length"]

    def pretraining(self):
        """Returns all settings of pre-training: this scale's, over its config's, over defaults."""
        fields = dataclasses.fields(PretrainSettings)
        fields = [field for field in fields if "help" in field.metadata]
        defaults = {field.name: field.default for field in fields}
        config = self.pretrain.get("config")
        named = config_file.read(config, fields)[0] if config else {}
        return {**defaults, **named, **self.pretrain}


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper, as a question that can be asked again.

    Attributes:
        name: file name without the suffix.
        question: one sentence.
        source: `{"paper", "url", "place"}`.
        protocol: list of sentences: how the paper did it.
        unknown: list of sentences: what is not known of the paper, and what is taken instead.
        tables: list of `PaperTable`.
        disagreement: `{"text", "claims", "contrasts"}`, or `None`: what papers say
            of the same question, and which of our differences bear on it.
        scales: dictionary name -> `Scale`.
    """

    name: str
    question: str
    source: dict
    protocol: list
    unknown: list
    tables: list
    disagreement: dict | None
    scales: dict


def names():
    """Returns the names of the experiments that come with the package, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def find(name):
    """Returns the `Experiment` of a name, or of the path of a `.toml` file.

    Raises:
        ValueError: if there is none of this name (the nearest one is suggested), or its file has
            mistakes: all of them, one in a line.
    """
    path = FOLDER / f"{name}.toml"
    if name not in names():
        path = pathlib.Path(name)
        if path.suffix != ".toml":
            raise ValueError(
                f"NAME must be one of {names()}, or the path of a .toml file; the nearest is "
                f"{nearest(name, names())!r}. Received: {name!r}"
            )
    try:
        entries = read_toml(path)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"NAME must name a readable TOML file: {error}. Received: {name!r}"
        ) from None
    problems = check(entries)
    if problems:
        raise ValueError("\n".join(f"{path.name}: {problem}" for problem in problems))
    return _experiment(path.stem, with_defaults(entries))


def _experiment(name, entries):
    scales = {
        scale: Scale(scale, **{"variants": entries["variants"], **values})
        for scale, values in entries["scales"].items()
    }
    tables = [PaperTable(**values) for values in entries["paper"]]
    rest = {key: entries[key] for key in ("question", "source", "protocol", "unknown")}
    return Experiment(
        name,
        **rest,
        tables=tables,
        disagreement=entries.get("disagreement"),
        scales=scales,
    )
