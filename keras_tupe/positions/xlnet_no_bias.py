"""XLNet's relative positions without u and v, which Huang et al. found unstable in BERT."""

from keras_tupe.positions import xlnet

METHOD = xlnet.METHOD.with_options(
    summary="projected sinusoids of the distance, without query biases",
    source="Huang et al. 2020, Sec. 3.4",
    equation=r"s_{ij} = \frac{q_i \cdot k_j + q_i \cdot R_{i-j} W^R}{\sqrt{d}}",
    where={symbol: xlnet.METHOD.where[symbol] for symbol in ("R_{i-j}", "W^R")},
    relative_step_time=(1.09, 1.14),
    use_biases=False,
)
