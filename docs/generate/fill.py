"""Generated parts of pages that are written by hand, in place of comments."""


def fill(text, parts, page):
    """Returns a page with its generated parts.

    Args:
        text: Markdown with comments such as `<!-- generated: table -->`.
        parts: dictionary of the name in a comment -> Markdown.
        page: the page, for the message.

    Raises:
        ValueError: if a comment is not there once.
    """
    for part, content in parts.items():
        comment = f"<!-- generated: {part} -->"
        if text.count(comment) != 1:
            raise ValueError(
                f"{page} must have the line {comment!r} once. "
                f"Received: {text.count(comment)} such lines"
            )
        text = text.replace(comment, content)
    return text
