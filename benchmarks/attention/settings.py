"""The settings of `benchmarks.attention`."""

import dataclasses

from benchmarks.harness.checks import PRECISIONS, Lists, wrong_numbers
from training.command.checks import no_folder
from training.command.settings import COUNT, POSITIVE, setting, wrong_fields
from training.command.variant import parse
from training.command.without_keras import method_names

ALL = ("all",)
BASELINE = "absolute"
CLIP = 64  # distance that methods with one are measured with too
INTERLEAVED = 2048  # longest texts that are timed in interleaved rounds


@dataclasses.dataclass(frozen=True)
class Settings(Lists):
    """Settings of `benchmarks.attention`."""

    positions: tuple = setting(
        ALL,
        "Position methods with their options, such as tupe_r shaw:k=64, or all: every one, and "
        f"with k={CLIP} too where it has that.",
    )
    heads: tuple = setting((4, 12), "Numbers of heads, each >= 1.")
    lengths: tuple = setting((128, 512, 2048, 16384), "Sequence lengths in tokens, each >= 1.")
    head_dim: int = setting(64, "Size of each head.", rule=COUNT)
    tokens: int = setting(2048, "Tokens of a batch; at least one sequence is taken.", rule=COUNT)
    rounds: int = setting(7, f"Interleaved rounds up to {INTERLEAVED} tokens.", rule=COUNT)
    precision: str = setting("float32", "Precision of the work.", one_of=PRECISIONS)
    xla: bool = setting(False, "On TensorFlow, compile by XLA. JAX always does.")
    limit_mib: int = setting(4096, "Memory that a layer may take at most, in MiB.", rule=COUNT)
    step_seconds: float = setting(
        120.0,
        "Leave out what would take longer for a step, judged by a shorter length.",
        rule=POSITIVE,
    )
    out: str = setting(
        "benchmarks/results/attention", "Folder to write attention.json and attention.md to."
    )

    NUMBERS = ("heads", "lengths")

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        return [
            *self._wrong_positions(),
            *wrong_numbers(self, "heads", "lengths"),
            *wrong_fields(self).values(),
            *no_folder(self.out),
        ]

    def variants(self):
        """Returns the methods with their options, as `Variant`s, the baseline first."""
        texts = self.positions
        if texts == ALL:
            from keras_tupe import positions

            texts = []
            for name in method_names():
                clips = "k" in positions.get(name).options
                texts += [name, f"{name}:k={CLIP}"] if clips else [name]
        found = [parse(text) for text in (BASELINE, *texts)]
        return list({variant.label: variant for variant in found}.values())

    def _wrong_positions(self):
        found = []
        for text in self.positions if self.positions != ALL else ():
            try:
                parse(text)
            except (ValueError, TypeError) as error:
                found.append(f"--positions: {error}")
        return found
