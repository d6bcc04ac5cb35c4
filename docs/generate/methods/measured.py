"""What was measured of a method: the picture of its heads, and its cost."""

import json
import pathlib

from training.command.report import table

ROOT = pathlib.Path(__file__).parents[3]
GALLERY = ROOT / "docs" / "gallery" / "gallery.json"
RESULTS = ROOT / "benchmarks" / "results"
# Runs of `benchmarks.methods`, times and peak memory: of most methods, and of those since 2021.
RUNS = (
    (RESULTS / "methods.json", RESULTS / "memory" / "methods.json"),
    (RESULTS / "since-2021" / "methods.json", RESULTS / "since-2021" / "methods.json"),
)


def heads(name):
    """Returns the picture of the gallery with what is seen in it."""
    facts = _json(GALLERY)
    found = facts["methods"].get(name)
    if found is None:
        return f"Not drawn yet: `python -m docs.generate.gallery --positions {name}`."
    kinds = {"logits": "position logits", "scores": "attention scores"}
    before, after = ([kinds[found[s]["kind"]], *found[s]["patterns"]] for s in ("before", "after"))
    return "\n\n".join(
        [
            f"![Heads of {name}: {before[0]} at initialization above, {after[0]} after "
            f"{facts['steps']} steps below](../../gallery/{found['picture']})",
            f"The first block's heads of a {facts['size']} encoder, before and after "
            f"{facts['steps']} steps ({facts['tokens']:,} tokens) of masked language modeling, "
            f"seed {facts['seed']}. Held-out loss then: {found['loss']:.2f}, which says how fast "
            "the method starts and not how good it gets. Rows are queries, columns keys, [CLS] "
            "first. Red and blue: logits that positions alone make, above and below the mean of "
            "the row. Green: attention scores averaged over texts, where positions alone "
            "make none.",
            f"Patterns by the [rules of the analysis](../guides/look_at_a_method.md#patterns): at "
            f"initialization {'; '.join(before[1:])}; after training {'; '.join(after[1:])}.",
        ]
    )


def cost(name):
    """Returns the measured cost by that of `absolute`."""
    for times, memory in (map(_json, paths) for paths in RUNS):
        rows = _rows(name, times["rows"], memory["rows"])
        if rows:
            break
    else:
        return f"Not measured yet: `python -m benchmarks.methods --positions {name} absolute`."
    machine, size = times["machine"], times["settings"]
    commands = " and ".join(dict.fromkeys(f"`{run['command']}`" for run in (times, memory)))
    return "\n\n".join(
        [
            "Time of a whole training step and of inference, and peak memory, each divided by that "
            "of `absolute` in the same rounds; lower is better.",
            table(
                ["tokens", "options", "training step", "inference", "peak memory"],
                rows,
                right=(0, 2, 3, 4),
            ),
            f"Size `{size['size']}` ({size['num_layers']} blocks, width {size['hidden_dim']}), "
            f"{size['tokens']} tokens per step, on {machine['cores']} cores of {machine['cpu']}, "
            f"medians of {size['rounds']} rounds: read them as +- 0.05. Made by "
            f"{commands}.",
        ]
    )


def _rows(name, times, memory):
    """Returns the cells of a method's rows in a run."""
    peak = {
        (row["length"], row["label"]): row.get("peak_memory_mib")
        for row in memory
        if row["by"] == "keras_tupe"
    }
    rows = []
    for row in times:
        if row["by"] == "keras_tupe" and row["position"] == name:
            own, base = (peak.get((row["length"], label)) for label in (row["label"], "absolute"))
            label = ", ".join(f"`{key}={value}`" for key, value in row["options"].items())
            rows.append(
                [
                    f"{row['length']}",
                    label or "default",
                    f"{row['train_ratio']:.2f}",
                    f"{row['inference_ratio']:.2f}",
                    f"{own / base:.2f}" if own and base else "-",
                ]
            )
    return rows


def _json(path):
    return json.loads(path.read_text(encoding="utf-8"))
