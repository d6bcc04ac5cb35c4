"""Text generation: position methods with a cache, one without, and KerasHub's GPT-2.

    python -m benchmarks.generation
    python -m benchmarks.generation --positions rope,tupe_r --batches 1 --length 512 --rounds 5

Every model has the same sizes and new weights; each is called through `generate`, greedily, in
interleaved rounds, from prompts of `--prompt` tokens to `--length`, without a stop token. Without a
cache means that every token takes a call on all `--length` positions; a few tokens are enough to
time that. Ratios are medians over rounds of times per token in the same round, with their 95 %
interval. Writes `generation.json` and `generation.md` to `--out`. With `KERAS_BACKEND=jax` it runs
on JAX.
"""

import dataclasses

from benchmarks.generation.settings import Settings
from training.command.settings import parse
from training.command.shell import sentences


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "generation")
    from benchmarks.generation.collect import collect
    from benchmarks.generation.report import markdown
    from benchmarks.harness import provenance, report
    from keras_tupe import SIZES

    facts = {
        **{name: ",".join(map(str, getattr(settings, name))) for name in ("positions", "batches")},
        **{name: getattr(settings, name) for name in ("length", "prompt", "rounds", "xla", "size")},
        **dataclasses.asdict(SIZES[settings.size]),
    }
    record = {**provenance.origin("generation", arguments), "settings": facts}
    record["versions"] = provenance.versions()
    with sentences("generation", "Nothing was written."):
        record["rows"] = collect(settings)
    report.write(settings.out, "generation", record, markdown(record))


if __name__ == "__main__":
    main()
