"""The page of a run of `benchmarks.exports`."""

from benchmarks.exports.cases import BASELINE, PEER
from training.command.report import table

HEADER = ["length", "batch", "encoder", "ms", "of absolute", "95 %", "of KerasHub's BERT", "95 %"]


def markdown(record):
    """Returns the page of a run.

    Args:
        record: what `exports.json` holds.
    """
    lines = [
        [
            str(row["length"]),
            str(row["batch"]),
            row["encoder"],
            f"{row['ms']:.1f}",
            *(
                cell
                for other in (BASELINE, PEER)
                for cell in (
                    f"{row['ratios'][other]['median']:.3f}",
                    "{:.3f} to {:.3f}".format(*row["ratios"][other]["interval"]),
                )
            ),
        ]
        for row in record["rows"]
    ]
    size = record["settings"]["size"]
    return (
        "# Inference of exported encoders\n\n"
        f"`{record['command']}` at {record['source']['commit']} on {record['machine']['cores']} "
        f"cores ({record['machine']['cpu']}); size {size}, float32, "
        f"{record['settings']['rounds']} interleaved rounds; times of one call of "
        "`serving_default`, ratios of times in the same round.\n\n"
        f"{table(HEADER, lines)}\n"
    )
