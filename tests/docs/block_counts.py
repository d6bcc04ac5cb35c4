"""Tells at a session's end what was done with the code blocks of pages."""

import collections

PROPERTY = "code_blocks"


def pytest_terminal_summary(terminalreporter):
    """Prints the sum of what the tests of pages recorded; pytest calls it."""
    total, pages = collections.Counter(), 0
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                for name, value in report.user_properties:
                    if name == PROPERTY:
                        total.update(value)
                        pages += 1
    if total:
        told = ", ".join(f"{number} {kind}" for kind, number in sorted(total.items()))
        terminalreporter.write_line(
            f"code blocks of {pages} tests of pages: {told}; {sum(total.values())} in all"
        )
