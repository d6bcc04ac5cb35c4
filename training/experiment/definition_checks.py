"""What can be wrong with the file of an experiment."""

import dataclasses

from keras_tupe import SIZES
from training.command import config_file
from training.command.checks import PRECISIONS
from training.command.kinds import kind_of, nearest
from training.experiment import schema
from training.experiment.schema import defaults, mistakes, unknown_keys
from training.finetune_glue.protocol import PROTOCOLS, TASKS
from training.presets.variant import parse as parse_variant
from training.pretrain.settings import Settings as PretrainSettings


def check(entries):
    """Returns a sentence for each mistake of a file of an experiment.

    Args:
        entries: dictionary, as TOML gives it.
    """
    found = mistakes(entries, schema.EXPERIMENT, "the file")
    if found:
        return found
    found += mistakes(entries["source"], schema.SOURCE, "[source]")
    found += _variants(entries["variants"], "[[variants]]")
    for number, table in enumerate(entries["paper"], 1):
        found += _paper_table(table, f"[[paper]] {number}")
    if not found and entries.get("disagreement"):
        found += _disagreement(entries["disagreement"], entries["paper"])
    found += unknown_keys(entries["scales"], schema.SCALES, "[scales]")
    for name, scale in entries["scales"].items():
        found += _scale(scale, f"[scales.{name}]", entries["variants"])
    return found


def with_defaults(entries):
    """Returns the entries of a file without mistakes, with the defaults of what is left out."""
    full = {**defaults(schema.EXPERIMENT), **entries}
    full["paper"] = [
        {**table, "rows": [{**defaults(schema.ROW), **row} for row in table["rows"]]}
        for table in entries["paper"]
    ]
    full["scales"] = {}
    for name, scale in entries["scales"].items():
        parts = {
            part: {**defaults(spec), **scale[part]}
            for part, spec in (("glue", schema.GLUE), ("squad", schema.SQUAD))
            if part in scale
        }
        full["scales"][name] = {**scale, **parts}
    return full


def _variants(variants, place):
    found = []
    for variant in variants:
        wrong = mistakes(variant, schema.VARIANT, place)
        if not wrong:
            try:
                parse_variant(variant["position"])
            except ValueError as error:
                wrong = [f"{place}: {error}"]
        found += wrong
    return found


def _paper_table(table, place):
    found = mistakes(table, schema.TABLE, place)
    if found:
        return found
    for column in table["columns"]:
        found += mistakes(column, schema.COLUMN, f"columns of {place}")
    for row in table["rows"]:
        found += mistakes(row, schema.ROW, f"rows of {place}")
    if found:
        return found
    columns, rows = ([entry["name"] for entry in table[key]] for key in ("columns", "rows"))
    for row in table["rows"]:
        if len(row["values"]) != len(columns):
            found.append(
                f"A row of {place} must have a value for each of the {len(columns)} columns. "
                f"Received: {row['name']!r} with {len(row['values'])}"
            )
    for key, known in (("headline", columns), ("baseline", rows)):
        if table[key] not in known:
            found.append(f"{key} in {place} must be one of {known}. Received: {table[key]!r}")
    return found


def _disagreement(entries, tables):
    found = mistakes(entries, schema.DISAGREEMENT, "[disagreement]")
    if found:
        return found
    for contrast in entries["contrasts"]:
        wrong = mistakes(contrast, schema.CONTRAST, "[[disagreement.contrasts]]")
        against = [claim.get("against") for claim in entries["claims"]]
        if not wrong and contrast["against"] not in against:
            wrong = [
                f"against in [[disagreement.contrasts]] must be that of a claim, {against}. "
                f"Received: {contrast['against']!r}"
            ]
        found += wrong
    known = {table["title"]: table for table in tables}
    for claim in entries["claims"]:
        wrong = mistakes(claim, schema.CLAIM, "[[disagreement.claims]]")
        if not wrong:
            table = known.get(claim["table"], {"rows": [], "columns": []})
            rows, columns = ({entry["name"] for entry in table[key]} for key in ("rows", "columns"))
            if not {claim["row"], claim["baseline"]} <= rows or claim["column"] not in columns:
                wrong = [
                    "[[disagreement.claims]] must name the title, two rows and a column of a "
                    f"[[paper]] table. Received: {claim}"
                ]
        found += wrong
    return found


def _scale(scale, place, variants):
    found = mistakes(scale, schema.SCALE, place)
    if found:
        return found
    found += _variants(scale.get("variants", []), f"variants of {place}")
    if ("preset" in scale) == ("pretrain" in scale):
        found.append(
            f"{place} must have either pretrain, settings of new models, or preset, of one that is "
            f"given. Received: {sorted({'preset', 'pretrain'} & set(scale)) or 'none'}"
        )
    count = len(scale.get("variants", variants))
    if "preset" in scale and (count != 2 or "squad" not in scale or "glue" in scale):
        found.append(
            f"{place} has a preset and must have two variants, that of the preset and the one that "
            f"is put in, and squad alone. Received: {count} variants"
        )
    if scale["precision"] not in PRECISIONS:
        found.append(
            f"precision in {place} must be one of {list(PRECISIONS)}. "
            f"Received: {scale['precision']!r}"
        )
    if "pretrain" in scale:
        found += _pretrain(scale["pretrain"], f"{place} pretrain")
    if "preset" in scale:
        wrong = mistakes(scale["preset"], schema.PRESET, f"{place} preset")
        found += wrong or _size(scale["preset"], f"{place} preset")
    if "glue" in scale:
        found += _glue(scale["glue"], f"{place} glue")
    if "squad" in scale:
        squad = mistakes(scale["squad"], schema.SQUAD, f"{place} squad")
        if not squad and scale["squad"]["doc_stride"] >= min(scale["squad"]["lengths"]):
            squad.append(f"doc_stride in {place} squad must be below all lengths.")
        found += squad
    return found


def _glue(entries, place):
    found = mistakes(entries, schema.GLUE, place)
    if found:
        return found
    found += [
        f"tasks in {place} must be of {list(TASKS)}; the nearest is {nearest(task, TASKS)!r}. "
        f"Received: {task!r}"
        for task in entries["tasks"]
        if task not in TASKS
    ]
    if entries["protocol"] not in PROTOCOLS:
        found.append(
            f"protocol in {place} must be one of {list(PROTOCOLS)}. "
            f"Received: {entries['protocol']!r}"
        )
    return found


def _size(entries, place):
    size = entries.get("size")
    if size is None or size in SIZES:
        return []
    return [
        f"size in {place} must be one of {list(SIZES)}; the nearest is {nearest(size, SIZES)!r}. "
        f"Received: {size!r}"
    ]


def _pretrain(entries, place):
    """Checks settings of `training.pretrain`, and what an experiment adds to them."""
    known = {
        field.name: field
        for field in dataclasses.fields(PretrainSettings)
        if "help" in field.metadata
    }
    own = {key: value for key, value in entries.items() if key in schema.PRETRAIN}
    found = mistakes(own, schema.PRETRAIN, place)
    found += unknown_keys(entries, {**known, **schema.PRETRAIN}, place)
    for key, value in entries.items():
        if key in known:
            kind = kind_of(known[key])
            try:
                kind.from_toml(value)
            except ValueError:
                found.append(f"{key} in {place} must be {kind}. Received: {value!r}")
    if not found:
        found += _size(entries, place)
    if "config" in entries and not found:
        found += config_file.read(entries["config"], list(known.values()))[1]
    return found
