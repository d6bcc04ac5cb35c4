"""Ports of this machine, on 127.0.0.1 alone."""

import contextlib
import socket

HOST = "127.0.0.1"


def take(given):
    """Returns a port for each name: the given one, or any that is free.

    A free port may be taken by somebody else before the server has it: the server says so then.

    Args:
        given: dictionary, name -> number, or `None` for a free one.

    Raises:
        ValueError: if a given port is taken, or is given twice.
    """
    ports = {}
    with contextlib.ExitStack() as stack:
        for name, number in sorted(given.items(), key=lambda item: item[1] is None):
            listener = stack.enter_context(socket.socket())
            # What an ended server left behind is no obstacle; one that listens is.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((HOST, number or 0))
                listener.listen()
            except OSError as error:
                raise ValueError(
                    f"The port of {name} is taken or not allowed ({error.strerror}). Choose "
                    f"another one, or none to get a free one. Received: {number}"
                ) from error
            ports[name] = listener.getsockname()[1]
    return ports


def answers(number):
    """Returns whether somebody listens on a port."""
    with socket.socket() as connection:
        connection.settimeout(1)
        return connection.connect_ex((HOST, number)) == 0
