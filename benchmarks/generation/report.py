"""The page of a run of `benchmarks.generation`."""

from benchmarks.generation.cases import BASELINE, PEER
from training.command.report import table

HEADER = [
    "texts at once",
    "model",
    "tokens/s",
    "of absolute",
    "95 %",
    "of KerasHub's GPT-2",
    "95 %",
]


def markdown(record):
    """Returns the page of a run.

    Args:
        record: what `generation.json` holds.
    """
    lines = [
        [
            str(row["batch"]),
            row["model"],
            f"{row['tokens_per_second']:,.0f}",
            *(
                cell
                for other in (BASELINE, PEER)
                for cell in (
                    f"{row['ratios'][other]['median']:.2f}",
                    "{:.2f} to {:.2f}".format(*row["ratios"][other]["interval"]),
                )
            ),
        ]
        for row in record["rows"]
    ]
    settings = record["settings"]
    return (
        "# Text generation\n\n"
        f"`{record['command']}` at {record['source']['commit']} on {record['machine']['cores']} "
        f"cores ({record['machine']['cpu']}); size {settings['size']}, float32, greedy, from "
        f"{settings['prompt']} to {settings['length']} tokens, {settings['rounds']} interleaved "
        f"rounds{', compiled by XLA' if settings['xla'] else ''}. Speeds are tokens per second of "
        "all texts at once; a ratio above 1 is faster. Without a cache every token is a call on "
        "all positions.\n\n"
        f"{table(HEADER, lines)}\n"
    )
