"""Report of a conversion: what became of each weight."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Report:
    """Report of a conversion: the weights that it kept, dropped and made new.

    `print(report)` shows it as a table, with weights that share a reason in one line.

    Attributes:
        kept: paths of our weights that hold what the source held.
        dropped: name of a weight of the source -> why nothing here holds it.
        new: path of a weight of ours that the source has not -> why, and what it holds.
        notes: sentences about all that is not a weight.

    Example:
        >>> print(Report(("token_embedding/embeddings",), {"position_ids": "a constant"}))
        kept     1 weight
        dropped  1 weight: a constant
                   position_ids
        new      0 weights
    """

    kept: tuple[str, ...] = ()
    dropped: dict[str, str] = dataclasses.field(default_factory=dict)
    new: dict[str, str] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __str__(self):
        lines = [f"kept     {_count(self.kept)}"]
        lines += _section("dropped", self.dropped) + _section("new", self.new)
        return "\n".join(lines + [f"note     {note}" for note in self.notes])


def _section(title, reasons):
    lines = [] if reasons else [f"{title:<8} {_count(reasons)}"]
    for reason in dict.fromkeys(reasons.values()):
        names = [name for name, given in reasons.items() if given == reason]
        lines.append(f"{title:<8} {_count(names)}: {reason}")
        lines += [f"           {name}" for name in names]
    return lines


def _count(names):
    return f"{len(names):,} weight" + ("" if len(names) == 1 else "s")
