"""The settings of `training.generate`."""

import dataclasses

from training.command.settings import COUNT, COUNT_OR_ZERO, POSITIVE, RATE, setting, wrong_fields
from training.presets.folder import is_seq2seq, preset_problems

SAMPLERS = ("greedy", "top_k", "top_p", "random", "beam")
_DRAWS = ("top_k", "top_p", "random")  # the others give one text per prompt


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `training.generate`."""

    preset: str | None = setting(
        None,
        "Folder of the preset of a causal language model, or of a model of pairs.",
        positional=True,
    )
    prompt: tuple = setting((), "Text to go on with, or source; may be given again.", each=True)
    max_length: int | None = setting(
        None,
        "Tokens of a whole text, prompt included, or of a target. Default: as many as the model "
        "was made for.",
        rule=COUNT,
    )
    sampler: str = setting(SAMPLERS[0], "How the next token is chosen.", one_of=SAMPLERS)
    temperature: float = setting(
        1.0, "By what logits are divided: above 1 for bolder texts.", rule=POSITIVE
    )
    k: int = setting(
        40, "Among how many of the likeliest tokens top_k draws; beams of beam.", rule=COUNT
    )
    p: float = setting(0.9, "Among the likeliest tokens of which share top_p draws.", rule=RATE)
    seed: int = setting(0, "Seed of what is drawn.", rule=COUNT_OR_ZERO)
    num: int = setting(1, "Texts per prompt.", rule=COUNT)
    position_file: str | None = setting(
        None, "Python file that defines the preset's own positional method."
    )

    def problems(self):
        """Returns a sentence for each mistake."""
        config, found = preset_problems(self.preset, "prompts", self.position_file)
        found += wrong_fields(self).values()
        if not self.prompt:
            found.append('--prompt must be given, such as --prompt "The king". Received: none')
        if self.num > 1 and self.sampler in SAMPLERS and self.sampler not in _DRAWS:
            found.append(
                f"--num above 1 needs a sampler that draws, one of {list(_DRAWS)}: the others "
                f"write the same text each time. Received: --num {self.num} --sampler "
                f"{self.sampler}"
            )
        is_full = config is not None and config.get("attention_pattern", "full") == "full"
        if is_full and not is_seq2seq(self.preset):
            found.append(
                "PRESET must be that of a causal language model, which `keras-tupe pretrain "
                "--objective causal_lm` trains, or of a model of pairs; the tokens of this one see "
                f"later ones. Received: {self.preset!r}"
            )
        return found
