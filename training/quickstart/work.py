"""All of the quickstart: one model per method, their table, and the best one exported."""

import shlex

from training.command.folder_lock import FolderLock
from training.command.tables import table
from training.quickstart import data as quickstart_data
from training.quickstart import export, plan, run
from training.quickstart.recipe import BATCH_SIZE


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


def train_and_publish(settings, names, command, stages):
    """Trains one model per method and writes the folder of the run.

    Args:
        settings: a `Settings` without problems.
        names: list of the methods.
        command: the command line, for the card.
        stages: the `Stages` of the command, which knows all of them.

    Returns:
        `(results, data, best)`: list of `Result`, the `QuickstartData`, and the exported result.
    """
    with FolderLock(settings.out, beside=True):
        return _train_and_publish(settings, names, command, stages)


def _train_and_publish(settings, names, command, stages):
    documents = quickstart_data.load_documents(settings.corpus, stages)
    data = quickstart_data.prepare(documents, BATCH_SIZE, settings.seed, stages)
    facts = {key.replace("_", " "): value for key, value in data.facts.items()}
    stages.say("\n".join(f"{key:>20}: {value}" for key, value in facts.items()))

    work = _work(settings, names, data, stages)
    results, models, biases = [], {}, {}
    for name in names:
        result, models[name] = run.run(name, data, settings, work, stages)
        results.append(result)
        stages.say(
            f"{name}: held-out loss {result.loss:.4f}, masked accuracy {result.accuracy:.2%}, "
            f"word order {result.word_order:.2%} ({result.seconds:.0f} s)"
        )
        bias = export.position_bias(models[name])
        if bias is not None:
            biases[name] = bias

    best = min(results, key=lambda result: result.loss)
    model = models[best.position]
    stages.begin(plan.PUBLISHING)
    export.publish(settings, data, results, best, model, biases, command, stages)
    return results, data, best


def _work(settings, names, data, stages):
    """Returns the `Work` of each method, and corrects the plan of the rest."""
    batches = data.held_out.num_evaluation_batches
    if settings.minutes is None:
        return plan.Work(held_out_batches=batches)
    stages.begin(plan.MEASURING)
    rates = run.measure(names[0], data, settings, stages)
    work = plan.plan_rest(stages, settings.minutes, rates, names, batches)
    stages.say(
        f"{work.steps:,} steps of pre-training and {work.task_steps:,} of the word-order task for "
        f"each, so that all of it takes {settings.minutes:g} minutes"
    )
    return work


def next_steps(settings, data):
    """Returns what can be done with the folder of a run, in a few lines.

    Args:
        settings: the `Settings` of the run.
        data: its `QuickstartData`.
    """
    out, question = shlex.quote(settings.out), _question(settings, data)
    if settings.corpus is None:
        more = "keras-tupe quickstart --corpus my.txt --minutes 20 --out saved_models/mine"
    else:
        more = f"keras-tupe prepare --input {shlex.quote(settings.corpus)} --out rows"
    lines = {
        "what it learned": f"{settings.out}/curves.png, {settings.out}/position_bias_*.png",
        "ask it more": f"keras-tupe query {out} --text {shlex.quote(question)}",
        "your own text": more,
        "your own labels": f"docs/pages/start/finetune_csv.md, with {settings.out}/preset",
    }
    return "\n".join(f"{name + ':':<17}{text}" for name, text in lines.items())


def _question(settings, data):
    """Returns a text with a blank that fits the corpus."""
    if settings.corpus is None:
        return "a [MASK] of integers"
    known = set(data.tokenizer.pieces)
    words = data.task_test.texts[0].split()  # held out, words as they were
    middle = sorted(range(len(words)), key=lambda number: abs(2 * number - len(words)))
    blank = next((n for n in middle if len(words[n]) > 2 and words[n].lower() in known), middle[0])
    return " ".join([*words[:blank], "[MASK]", *words[blank + 1 :]])
