"""Commands in real processes that need not import TensorFlow anew."""

import functools
import importlib
import multiprocessing
import os


@functools.cache
def _processes(module):
    """Processes that are forked by one that has imported a command."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([module, "keras_hub", "tensorflow_text"])
    return context


def _alone(module, words, log):
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    importlib.import_module(module).main(words)


def start(module, words, log):
    """Starts the `main` of a module in another process; both its streams go to the file `log`."""
    process = _processes(module).Process(target=_alone, args=(module, words, log), daemon=True)
    process.start()
    return process
