"""An ablation with a task of one's own: is the last word of a row found, where all others are seen?

keras-tupe study examples/ablation_with_task.py --positions absolute tupe_r --data rows --out mine
"""

import functools
import os

import numpy as np
from keras import ops

from keras_tupe import TupeMaskedLM, data
from training.studies.ablation.runs import Ablating
from training.studies.ablation.settings import Settings
from training.study.study import Run, Study

ASKED = 200  # rows


def answer(preset, rows, folder):
    """Hides the last token before the end of each row, and counts how often it is found."""
    model, vocabulary = TupeMaskedLM.from_preset(preset), rows.vocabulary
    token_ids = np.array(rows[range(min(ASKED, len(rows)))], "int32")
    place = token_ids.shape[1] - 2
    inputs = {
        "token_ids": np.where(
            np.arange(token_ids.shape[1]) == place, vocabulary.mask_id, token_ids
        ).astype("int32"),
        "padding_mask": (token_ids != vocabulary.pad_id).astype("int32"),
        "mask_positions": np.full((len(token_ids), 1), place, "int32"),
    }
    found = ops.convert_to_numpy(model(inputs))[:, 0].argmax(-1)
    is_right = (found == token_ids[:, place]).mean()
    return {"scores": [{"score": "last word", "value": 100 * float(is_right)}]}


class WithTask(Ablating):
    """The runs of an ablation, and the task after each of them; the report knows it by its rows."""

    def plan(self, results):
        rows = data.PreparedRows(self.settings.data, "valid")
        shared = {"rows": data.split_hash(rows.record, "valid"), "asked": ASKED}
        for run in super().plan(results):
            yield run
            if run.kind == "pretrain":
                preset = os.path.join(self.settings.out or "", run.name, "preset")
                yield Run(
                    f"{os.path.dirname(run.name)}/last-word",
                    functools.partial(answer, preset, rows),
                    {**run.place, "step": None},
                    shared,
                    kind="task last-word",
                    after=(run,),
                )


STUDY = Study(__doc__, Settings, WithTask)
