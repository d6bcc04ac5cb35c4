"""Times in words."""


def duration(seconds):
    """Returns a time in words.

    Example:
        >>> duration(5025)
        '1 h 24 min'
    """
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
