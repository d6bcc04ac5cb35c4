"""Segments with a memory of what came before, beside one segment after the other in NumPy."""

from training.check.compare import in_float64, require_near
from training.check.method.cases import encoder, inputs, outputs, random_ids
from training.check.method.numpy_encoder import encode_segments

SIZES = {"attention_pattern": "causal", "memory_length": 4, "segment_length": 3}


def with_memory(cases):
    """Returns those of the cases that are defined for a memory.

    Args:
        cases: list of `Case`.
    """
    return [case for case in cases if not case.method.why_no_memory(case.resolved())]


def check_segments(case, **more):
    """Checks that a row has the answers of its segments, each with what is kept of those before.

    Args:
        case: a `Case`.
        **more: `normalize_first`, or other lengths.
    """
    model = encoder(case, **{**SIZES, **more})
    given = inputs(random_ids(3, 11), lengths=[11, 7, 2])
    real = given["padding_mask"].astype(bool)
    wanted = encode_segments(model, given, model.normalize_first)
    require_near(
        outputs(model, given)[0][real],
        wanted[real],
        in_float64(1e-12),
        "Segments with a memory differ from the oracle's",
    )
