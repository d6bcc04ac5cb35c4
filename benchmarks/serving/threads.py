"""Clients: threads that take the next request until there is none."""

import threading
import time

TICK = 10  # requests


def ask_all(requests, connect, clients, tick):
    """Asks all requests, each once.

    Args:
        requests: list.
        connect: function without arguments, called by each client, returns a function
            request -> answer.
        clients: number of threads.
        tick: called after every `TICK` requests, never by two threads at once.

    Returns:
        `(outcomes, total)`: a list of (answer or exception, seconds) in the order of the requests;
        the time of all of them together, in seconds.
    """
    outcomes = [None] * len(requests)
    waiting = iter(range(len(requests)))  # `next` of it is atomic
    start_line = threading.Barrier(clients + 1)
    ticking = threading.Lock()

    def client():
        try:
            ask = connect()
        except Exception as error:
            ask = _always(error)
        start_line.wait()
        for index in waiting:
            start = time.perf_counter()
            try:
                answer = ask(requests[index])
            except Exception as error:
                answer = error
            outcomes[index] = (answer, time.perf_counter() - start)
            if index % TICK == TICK - 1:
                with ticking:
                    tick()

    threads = [threading.Thread(target=client, daemon=True) for _ in range(clients)]
    for thread in threads:
        thread.start()
    start_line.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return outcomes, time.perf_counter() - start


def _always(error):
    def ask(request):
        raise error

    return ask
