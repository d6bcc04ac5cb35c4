"""TUPE-R without the reset of [CLS]."""

from keras_tupe.positions import tupe_r

METHOD = tupe_r.METHOD.with_options(
    summary="TUPE-R with [CLS] tied to position 0",
    source="Ke et al. 2021, eq. 8 (TUPE-R tie-cls)",
    cls="tied",
)
