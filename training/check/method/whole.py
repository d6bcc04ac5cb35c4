"""Promises of a whole encoder, seen in the rows of one batch that differ in one thing each.

A call of a small encoder costs its operations, whatever the batch: so variants are rows, not calls.
"""

import functools

import numpy as np

from training.check.compare import in_float64, require, require_near
from training.check.method.cases import VOCABULARY, Case, encoder, inputs, outputs
from training.check.method.numpy_encoder import encode

REAL, LENGTH = 7, 11
TOKENS = np.random.default_rng(0).permutation(VOCABULARY)[:REAL]
OTHER = np.random.default_rng(1).integers(0, VOCABULARY, (3, LENGTH))  # what stands in padding
ORDER = np.array([0, 3, 1, 6, 2, 5, 4])  # [CLS] stays
HOLES = np.array([0, 1, 3, 4, 7, 8, 10])  # where the tokens of a row with holes stand
PLAIN, SHUFFLED, SHIFTED, HOLED, ONE, FULL, PADDING = range(7)
OTHERS = {PLAIN: 7, SHIFTED: 8, HOLED: 9}  # row -> the same with other tokens in its padding
COUNT = 7 + len(OTHERS)


def batch():
    """Returns the inputs of `COUNT` rows."""
    ids, mask = np.tile(OTHER[0], (COUNT, 1)), np.zeros((COUNT, LENGTH), "int32")
    ids[list(OTHERS.values())] = OTHER[1]
    begin = np.arange(REAL)
    places = {PLAIN: begin, SHIFTED: begin + 3, HOLED: HOLES, SHUFFLED: begin}
    places |= {other: places[row] for row, other in OTHERS.items()}
    for row, where in places.items():
        mask[row, where] = 1
        ids[row, where] = TOKENS[ORDER] if row == SHUFFLED else TOKENS
    mask[ONE, 0], ids[ONE, 0] = 1, TOKENS[0]
    mask[FULL], ids[FULL] = 1, OTHER[2]
    return {"token_ids": ids.astype("int32"), "padding_mask": mask}


def answers(case):
    """Returns the encoder of a case, the inputs, and its outputs; made once."""
    return _answers(case, id(case.method))


@functools.lru_cache(maxsize=4)
def _answers(case, method_id):
    model, given = encoder(case, num_layers=1), batch()
    return model, given, *outputs(model, given)


def check_equation(case):
    """Compares the answers with those of BERT in NumPy around the paper's equation."""
    model, given, rows, pooled = answers(case)
    whole = [PLAIN, SHUFFLED, ONE, FULL]
    real = given["padding_mask"].astype(bool)[whole]
    wanted = encode(model, {name: value[whole] for name, value in given.items()})
    what = "in a whole encoder differs from BERT around the oracle"
    require_near(rows[whole][real], wanted[0][real], in_float64(1e-11), f"The output {what}")
    require_near(pooled[whole], wanted[1], in_float64(1e-11), f"The pooled output {what}")


def check_padding(case):
    """Checks that padding is invisible: behind, before and between tokens, and a row of it."""
    model, given, rows, pooled = answers(case)
    real = given["padding_mask"].astype(bool)
    places = {PLAIN: "behind", SHIFTED: "before", HOLED: "between"}
    for row, other in OTHERS.items():
        what = f"differs when other tokens stand in the padding {places[row]} the real ones"
        require_near(
            rows[other][real[row]], rows[row][real[row]], in_float64(1e-13), f"The output {what}"
        )
    what = "The pooled output differs when other tokens stand in the padding"
    require_near(pooled[OTHERS[PLAIN]], pooled[PLAIN], in_float64(1e-13), what)
    require(
        np.isfinite(rows).all() and np.isfinite(pooled).all(),
        "The outputs must be finite where a row of the batch is padding alone.",
    )
    alone = outputs(model, inputs(TOKENS[None]))
    what = f"output of {REAL} tokens with {LENGTH - REAL} padded ones differs from that without"
    require_near(alone[0][0], rows[PLAIN, :REAL], in_float64(1e-11), f"The {what}")
    require_near(alone[1][0], pooled[PLAIN], in_float64(1e-11), f"The pooled {what}")
    unmasked = outputs(model, inputs(given["token_ids"][:1]))[0][0, :REAL]
    require(
        np.abs(unmasked - rows[PLAIN, :REAL]).max() > 1e-3,
        "The padding mask must matter, and the answers are the same without it.",
    )


def check_order(case):
    """Checks that another order of the tokens, and a shift of all, is seen as the record says.

    A shift may be seen with some of the `other_options` alone: a threshold may be far away.
    """
    _, _, rows, _ = answers(case)
    change = np.abs(rows[SHUFFLED, :REAL] - rows[PLAIN, :REAL][ORDER]).max()
    sees = case.method.sees_order
    require(
        change > 1e-3 if sees else change <= in_float64(1e-11),
        f"The record says sees_order={sees}, and another order of the tokens changes the answers "
        f"by {change:.1e}. If it is blind to order on purpose, its record says sees_order=False.",
    )
    change, invariant = _by_shift(case), case.method.shift_invariant
    others = (Case(case.name, tuple(x.items())) for x in case.method.other_options)
    seen = change > 1e-3 or (not invariant and any(_by_shift(other) > 1e-3 for other in others))
    require(
        change <= in_float64(1e-11) if invariant else seen,
        f"The record says shift_invariant={invariant}, and a shift of the whole sequence by three "
        f"positions changes the answers by {change:.1e}."
        + (
            ""
            if invariant
            else " If it sees distances alone, its record says shift_invariant=True."
        ),
    )


def _by_shift(case):
    rows = answers(case)[2]
    return np.abs(rows[SHIFTED, 3 : 3 + REAL] - rows[PLAIN, :REAL]).max()


def check_half_precision(case):
    """Checks that nothing is rounded in half precision that float32 holds, and all is finite."""
    _, given, rows, _ = answers(case)
    half = encoder(case, "mixed_float16", num_layers=1)
    got = outputs(half, given)[0].astype("float64")
    real = given["padding_mask"].astype(bool)
    require_near(got[real], rows[real], 0.1, "Under mixed_float16 the output is far off")


def check_future(case):
    """Checks that no bit of an output of a causal encoder depends on a later token."""
    causal = encoder(case, num_layers=1, attention_pattern="causal")
    ids = np.tile(TOKENS, (4, 1))
    for row, last in enumerate((0, 3, 5), 1):
        ids[row, last + 1 :] = (ids[row, last + 1 :] + 1 + last) % VOCABULARY
    found = outputs(causal, inputs(ids))[0]
    for row, last in enumerate((0, 3, 5), 1):
        same = (found[row, : last + 1] == found[0, : last + 1]).all()
        require(same, "Under 'causal', a token must not see what comes after it.")
        moved = (found[row, last + 1 :] != found[0, last + 1 :]).any()
        require(moved, "Under 'causal', later tokens must see themselves.")
