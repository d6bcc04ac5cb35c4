"""TUPE-R without the reset of [CLS]."""

from keras_tupe.positions import t5, tupe_r

METHOD = tupe_r.METHOD.with_options(
    summary="TUPE-R with [CLS] tied to position 0",
    source="Ke et al. 2021, eq. 8 (TUPE-R tie-cls)",
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{2d}} "
    r"+ \frac{\mathrm{LN}(p_i) U^Q \cdot \mathrm{LN}(p_j) U^K}{\sqrt{2d}} "
    r"+ b_{\mathrm{bucket}(j - i)}",
    where=t5.METHOD.where,
    cls="tied",
)
