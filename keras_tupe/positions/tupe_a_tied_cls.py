"""TUPE-A without the reset of [CLS]."""

from keras_tupe.positions import tupe_a

METHOD = tupe_a.METHOD.with_options(
    summary="TUPE-A with [CLS] tied to position 0",
    source="Ke et al. 2021, eq. 7 (TUPE-A tie-cls)",
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{2d}} "
    r"+ \frac{\mathrm{LN}(p_i) U^Q \cdot \mathrm{LN}(p_j) U^K}{\sqrt{2d}}",
    where={},
    cls="tied",
)
