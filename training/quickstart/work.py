"""All of the quickstart: one model per method, their table, and the best one exported."""

from training.command.folder_lock import FolderLock
from training.command.tables import table
from training.quickstart import data as quickstart_data
from training.quickstart import export, run


def report(results, data):
    """Prints the table of the run."""
    rows = [
        [
            result.position,
            f"{result.loss:.2f}",
            f"{result.accuracy:.1%}",
            f"{result.word_order:.2%} +- {result.interval:.1%}",
            f"{result.parameters:,}",
            f"{result.seconds:.0f} s",
        ]
        for result in results
    ]
    header = ["method", "held-out loss", "masked accuracy", "word order", "parameters", "time"]
    print("\n" + table(header, rows))
    print(
        f"The most frequent piece alone would have a masked accuracy of {data.frequent_share:.1%}."
    )
    if any(result.position == "none" for result in results):
        print(
            "Without positions both sentences of a word-order pair are the same bag of words and "
            "get the same answer: one of the two is right, hence 50 %, by necessity."
        )


def train_and_publish(settings, names, command):
    """Trains one model per method and writes the folder of the run.

    Args:
        settings: a `Settings` without problems.
        names: list of the methods.
        command: the command line, for the card.

    Returns:
        `(results, data, best)`: list of `Result`, the `QuickstartData`, and the exported result.
    """
    with FolderLock(settings.out, beside=True):
        return _train_and_publish(settings, names, command)


def _train_and_publish(settings, names, command):
    documents = quickstart_data.load_documents(settings.corpus)
    data = quickstart_data.prepare(documents, run.BATCH_SIZE, settings.seed)
    facts = {key.replace("_", " "): value for key, value in data.facts.items()}
    print("\n".join(f"{key:>20}: {value}" for key, value in facts.items()), flush=True)

    steps, task_steps = run.STEPS, run.TASK_STEPS
    if settings.minutes is not None:
        steps, task_steps = run.steps_for(settings.minutes, names, data, settings)
    results, models, biases = [], {}, {}
    for name in names:
        result, models[name] = run.run(name, data, settings, steps, task_steps)
        results.append(result)
        bias = export.position_bias(models[name])
        if bias is not None:
            biases[name] = bias

    best = min(results, key=lambda result: result.loss)
    model = models[best.position]
    export.publish(settings, data, results, best, model, biases, command)
    return results, data, best
