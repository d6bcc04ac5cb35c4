"""Numbers that a paper prints, and what papers say of a question: tables of a definition."""

import dataclasses

from training.command.settings import nearest

table = dataclasses.dataclass(frozen=True, kw_only=True)


@table
class Source:
    """The paper, its address, and the place in it."""

    paper: str
    url: str
    place: str


@table
class Column:
    """A column of a table, and what was measured."""

    name: str
    metric: str


@table
class Row:
    """A row of a table, and the variant of ours that answers to it, `""` if there is none."""

    position: str = ""
    name: str
    values: list[float]


@table
class PaperTable:
    """Numbers that a paper prints, and where.

    Attributes:
        title: heading of the table, with what was measured on which data.
        source: paper and number of its table.
        columns, rows: as many values in each row as columns.
        headline: name of the column that the picture shows.
        baseline: name of the row that the picture takes differences to.
    """

    title: str
    source: str
    columns: list[Column]
    rows: list[Row]
    headline: str
    baseline: str

    def value(self, row, column):
        """Returns a cell by the names of its row and column."""
        values = next(one.values for one in self.rows if one.name == row)
        return values[[one.name for one in self.columns].index(column)]

    def problems(self, place):
        """Returns a sentence for each row of another length, and each name that there is not."""
        columns, rows = ([one.name for one in found] for found in (self.columns, self.rows))
        found = [
            f"A row of {place} must have a value for each of the {len(columns)} columns. "
            f"Received: {row.name!r} with {len(row.values)}"
            for row in self.rows
            if len(row.values) != len(columns)
        ]
        found += choice("headline", self.headline, columns, place)
        return found + choice("baseline", self.baseline, rows, place)


@table
class Claim:
    """What a paper says of a question: a row less another one in a column of a table."""

    who: str
    against: str
    table: str
    row: str
    baseline: str
    column: str


@table
class Contrast:
    """A difference of ours that bears on the claims of one kind."""

    against: str
    position: str
    baseline: str


@table
class Disagreement:
    """What papers say of the same question, and which of our differences bear on it."""

    text: str
    claims: list[Claim]
    contrasts: list[Contrast]

    def problems(self, place):
        """Returns a sentence for each contrast without a claim."""
        against = [claim.against for claim in self.claims]
        return [
            f"against in contrasts of {place} must be that of a claim, {against}. "
            f"Received: {contrast.against!r}"
            for contrast in self.contrasts
            if contrast.against not in against
        ]


def choice(key, value, known, place):
    """Returns a sentence if a value is not one of those that are known."""
    if value in known:
        return []
    return [
        f"{key} in {place} must be one of {list(known)}; the nearest is "
        f"{nearest(value, known)!r}. Received: {value!r}"
    ]
