"""Refuses a configuration of a model far larger than the file of its weights."""


def check_described_size(sizes, held):
    """Refuses sizes of a model that the file cannot hold, before it is made.

    Args:
        sizes: dictionary of arguments of `TupeBackbone`, positive integers.
        held: number of weights in the file.

    Raises:
        ValueError: naming both.
    """
    width, length = sizes["hidden_dim"], sizes["max_sequence_length"]
    blocks = sizes["num_layers"] * width * (4 * width + 2 * sizes["intermediate_dim"])
    described = (sizes["vocabulary_size"] + sizes["num_segments"] + length) * width + blocks
    if described > 2 * held:
        raise ValueError(
            f"The configuration describes a model with more than {described:,} weights, and the "
            "file must hold them. Take both from the same folder. "
            f"Received: a file of {held:,} weights"
        )
