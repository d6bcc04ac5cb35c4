"""Bad documents: the first ends the work, or all are counted and listed."""

_MAX_LISTED = 10_000


def blank(document):
    """The message about a `Document` of which cleaning left nothing."""
    return f"The document is empty or blank. Received: {document.place}"


class Problems:
    """Collects what is wrong with the input.

    Args:
        skip: whether to go on after a problem.
        state: what `state` returned in an earlier run; by default there was none.
    """

    def __init__(self, skip, state=None):
        self._skip, state = skip, state or {}
        self.count = state.get("count", 0)
        self.messages = list(state.get("messages", []))

    def add(self, message):
        """Notes a problem.

        Raises:
            ValueError: with the message, unless problems are skipped.
        """
        if not self._skip:
            raise ValueError(f"{message} (--skip-bad lists bad documents instead, and goes on.)")
        self.count += 1
        if len(self.messages) < _MAX_LISTED:
            self.messages.append(message)

    def check_rest(self, num_documents):
        """Raises a ValueError if no document is left."""
        if not num_documents:
            raise ValueError(
                "No document is left to prepare; all of them are bad. "
                f"Received: skipped={self.count}, the first: {self.messages[0]}"
            )

    @property
    def state(self):
        """Everything so far, as a JSON dictionary."""
        return {"count": self.count, "messages": self.messages}
