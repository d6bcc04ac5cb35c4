"""How well discriminators tell replaced tokens, beside one that calls each token the text's own.

    python -m benchmarks.replaced_tokens runs/absolute,runs/tupe_r --data rows

Runs are those of `training.pretrain --objective replaced_token`, `--data` their rows. The first
`--batches` held-out batches get the noise of the runs' own validations. A token is called replaced
where its logit is above 0. So a discriminator is right more often than the constant one just where
more than half of the tokens that it calls replaced are; the p-value is of the exact sign test of
that, one-sided, which takes tokens to be independent. The area under the ROC curve asks for no
threshold: it is the chance that a replaced token has a higher logit than one of the text, and 0.5
is blind.
"""

import dataclasses
import pathlib

from training.command.settings import COUNT, parse, setting, wrong_fields
from training.command.shell import sentences


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the benchmark."""

    runs: tuple = setting((), "Folders of runs.", positional=True)
    data: str | None = setting(None, "Folder of their prepared rows.")
    batches: int = setting(20, "Held-out batches.", rule=COUNT)
    out: str | None = setting(None, "A JSON file for the record.")

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        found = [*wrong_fields(self).values()]
        if not self.runs:
            found.append("RUNS must be folders of training.pretrain. Received: none")
        if self.data is None:
            found.append("--data must name the folder of the runs' rows. Received: none")
        return found


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "replaced_tokens")
    from benchmarks.harness import provenance, report

    with sentences("replaced_tokens", "Nothing was written."):
        record = {
            **provenance.origin("replaced_tokens", arguments),
            "rows": [_measured(pathlib.Path(run), settings) for run in settings.runs],
        }
        report.print_json(record, settings.out)


def scores(logits, replaced):
    """Returns the scores of a discriminator.

    Args:
        logits: array `(tokens,)`, above 0: replaced.
        replaced: booleans `(tokens,)`.

    Returns:
        Dictionary: `tokens`; `constant`, the share of the text's own tokens, and `accuracy`, both
        in percent; `called`, how many it calls replaced, `right`, how many of these are, and
        `p_value`, of so many or more if each were right with a chance of 0.5; `area`, under the
        ROC curve, with ties in the middle.
    """
    import numpy as np
    import scipy.stats

    called = logits > 0
    right = int((called & replaced).sum())
    _, ranks, counts = np.unique(logits, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2  # ranks from 1, of equal ones their mean
    ones, others = int(replaced.sum()), int((~replaced).sum())
    above = middle[ranks][replaced].sum() - ones * (ones + 1) / 2
    return {
        "tokens": len(logits),
        "constant": 100 * float(np.mean(~replaced)),
        "accuracy": 100 * float(np.mean(called == replaced)),
        "called": int(called.sum()),
        "right": right,
        "p_value": float(scipy.stats.binom.sf(right - 1, int(called.sum()), 0.5)),
        "area": float(above / (ones * others)) if ones and others else None,
    }


def _measured(run, settings):
    import numpy as np

    from keras_tupe import data
    from keras_tupe.models import TupeReplacedTokenDetector
    from keras_tupe.tasks.replaced_token_detector import logits_and_replaced
    from training.command.log import VALID, read_log
    from training.compare import settings_of
    from training.pretrain.run import VALIDATION_SEED
    from training.pretrain.settings import Settings as Pretraining

    given = settings_of(run)
    names = {field.name for field in dataclasses.fields(Pretraining)}
    pretraining = Pretraining(**{name: given[name] for name in given if name in names})
    rule = pretraining.objective_record().rule
    prepared = data.PreparedRows(settings.data, "valid")
    rows = data.Rows(
        prepared,
        rule(prepared, pretraining.objective_options()),
        batch_size=pretraining.batch_size,
        seed=VALIDATION_SEED,
    )
    model = TupeReplacedTokenDetector.from_preset(str(run / "preset"))
    found = []
    for number in range(min(settings.batches, rows.num_evaluation_batches)):
        inputs, labels, weights = rows.evaluation_batch(number)
        outputs = model.predict_on_batch(inputs)
        name = "replaced_token"
        pair = logits_and_replaced(labels[name], outputs[name])
        counts = np.asarray(weights[name]) > 0
        found.append([np.asarray(part)[counts] for part in pair])
    logits, replaced = map(np.concatenate, zip(*found, strict=True))
    return {
        "position": pretraining.position,
        "seed": pretraining.seed,
        "mask_rate": pretraining.mask_rate,
        "generator_share": pretraining.generator_share,
        "step": read_log(run / VALID)["step"][-1],
        **scores(logits, replaced),
    }


if __name__ == "__main__":
    main()
