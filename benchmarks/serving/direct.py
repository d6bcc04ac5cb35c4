"""Calls of the SavedModel itself. A process of its own: `benchmarks.serving` starts it."""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # as in the server

import statistics

import tensorflow as tf
import tensorflow_text  # noqa: F401  for the ops of the tokenizer

from benchmarks.harness.process import answer as answer_job
from benchmarks.serving import answers as own
from benchmarks.serving.threads import ask_all

WARM_UP = 20


def work(job, tick):
    """Answers the requests directly, one after the other, then from many threads.

    Args:
        job: dictionary with `folder`, `signature`, `outputs`, `requests` (a file), `answers` (the
            file to write) and `clients`.
        tick: called after every `TICK` requests of `threads`.

    Returns:
        A dictionary: `rows`, one for each number of clients; `apart`, the median difference of the
        first answer from the others, which is what a mix-up would look like.
    """
    model = tf.saved_model.load(job["folder"])
    signature = model.signatures[job["signature"]]
    dtypes = {name: spec.dtype for name, spec in signature.structured_input_signature[1].items()}
    requests = own.read_requests(job["requests"])

    def answer(request):
        feeds = {name: tf.constant(value, dtypes[name]) for name, value in request.items()}
        outputs = signature(**feeds)
        return {name: outputs[name].numpy() for name in job["outputs"]}

    for request in requests[:WARM_UP]:
        answer(request)
    rows, answers = [], None
    for clients in sorted({1, job["clients"]}):
        outcomes, total = ask_all(requests, lambda: answer, clients, tick)
        for outcome, _ in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        answers = answers or [outcome for outcome, _ in outcomes]
        times = own.times([seconds for _, seconds in outcomes], total)
        rows.append({"how": "in process", "clients": clients, **times})
    own.write_answers(job["answers"], answers)
    return {"rows": rows, "apart": _apart(answers)}


def _apart(answers):
    first, *others = [{name: value[:1] for name, value in answer.items()} for answer in answers]
    found = [own.error(first, other) for other in others]
    return statistics.median(found) if found else None


if __name__ == "__main__":
    answer_job(work)
