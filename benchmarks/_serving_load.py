"""All clients of a server at once. A process of its own, in the server's environment."""

from benchmarks import _child, _serving_answers, _serving_threads
from benchmarks._serving_clients import CLIENTS


def work(job, tick):
    """Asks all requests from many threads and compares every answer.

    Args:
        job: dictionary with `how` (a key of `CLIENTS`), `host`, `port`, `model`, `outputs`,
            `requests` and `answers` (files), `clients`, and `warm_up`, the number of requests
            that are asked before and compared, but not timed.
        tick: called after every `TICK` requests of `_serving_threads`.

    Returns:
        A row: `p50_ms`, `p99_ms`, `per_second`, `wrong`, `failed`, `largest_error`, `batches`
        (rows of a batch -> number of batches), `mean_batch`; `first_failure`, a sentence or `None`.
    """
    requests = _serving_answers.read_requests(job["requests"])
    counts = [len(next(iter(request.values()))) for request in requests]
    expected = _serving_answers.read_answers(job["answers"], counts)

    def connect():
        return CLIENTS[job["how"]](job["host"], job["port"], job["model"], job["outputs"])

    clients = job["clients"]
    warm = _serving_threads.ask_all(requests[: job["warm_up"]], connect, clients, lambda: None)[0]
    outcomes, total = _serving_threads.ask_all(requests, connect, clients, tick)
    return {
        "how": job["how"],
        "clients": clients,
        **_serving_answers.times([seconds for _, seconds in outcomes], total),
        **_serving_answers.compare(
            [outcome for outcome, _ in warm + outcomes], expected[: len(warm)] + expected
        ),
        **_serving_answers.batches([outcome for outcome, _ in outcomes], counts),
    }


if __name__ == "__main__":
    _child.answer(work)
