"""The two models of a detector of replaced tokens: how they fit, and what they share."""

from keras import ops

from keras_tupe._keywords import did_you_mean
from keras_tupe.models.tupe_backbone import TupeBackbone

SHARING = ("tied", "gradient_disentangled", "none")


def check_arguments(embedding_sharing, discriminator_weight):
    """Refuses an unknown sharing, or a weight that is no number >= 0.

    Args:
        embedding_sharing, discriminator_weight: as of `TupeReplacedTokenDetector`.

    Raises:
        ValueError: if it is refused.
    """
    if embedding_sharing not in SHARING:
        raise ValueError(
            f"`embedding_sharing` must be one of {list(SHARING)}."
            f"{did_you_mean(embedding_sharing, SHARING)} "
            f"Received: embedding_sharing={embedding_sharing!r}"
        )
    weight = discriminator_weight
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < 1e9:
        raise ValueError(
            "`discriminator_weight` must be a number >= 0. "
            f"Received: discriminator_weight={weight!r}"
        )


def as_task(model, kind, name):
    """Returns a task of a class, or makes one of a backbone.

    Args:
        model: a task, or a `TupeBackbone`.
        kind: class of the task.
        name: of the argument that it was given as, and of a new task.

    Raises:
        TypeError: if it is neither.
    """
    if isinstance(model, kind):
        return model
    if not isinstance(model, TupeBackbone):
        raise TypeError(
            f"`{name}` must be a `TupeBackbone` or a `{kind.__name__}`. "
            f"Received: {type(model).__name__}"
        )
    return kind(model, name=name)


def check_pair(generator, discriminator, sharing):
    """Refuses two encoders that cannot read the same text, or share what is of two sizes.

    Args:
        generator, discriminator: `TupeBackbone`s.
        sharing: one of `SHARING`.

    Raises:
        ValueError: if they are refused.
    """
    names = ["vocabulary_size", "num_segments"]
    values = [[getattr(model, name) for name in names] for model in (generator, discriminator)]
    widths = [model.embedding_dim or model.hidden_dim for model in (generator, discriminator)]
    if sharing != "none":
        names.append("embedding width")
        for value, width in zip(values, widths, strict=True):
            value.append(width)
    for name, one, other in zip(names, *values, strict=True):
        if one != other:
            advice = (
                "Make the generator with `embedding_dim`, or share nothing (`embedding_sharing="
                "'none'`)."
                if name == "embedding width"
                else "Make both with the same."
            )
            raise ValueError(
                f"Generator and discriminator must have the same {name}. {advice} "
                f"Received: {one} in the generator, {other} in the discriminator"
            )


def again(task, token_embedding=None):
    """Returns a task of the same configuration and weights over other token vectors.

    Args:
        task: a `TupeMaskedLM` or a `TupeTokenDiscriminator`.
        token_embedding: layer with the token vectors, or `None` for a new one with those that the
            task has now.
    """
    config = {**task.backbone.get_config(), "dtype": task.backbone.dtype_policy}
    backbone = TupeBackbone(**config, token_embedding=token_embedding)
    own = {k: v for k, v in task.get_config().items() if k not in ("backbone", "preprocessor")}
    new = type(task)(backbone, **own)
    old = task.backbone.token_embedding
    if token_embedding is None:
        backbone.token_embedding.set_weights([ops.convert_to_numpy(old.embeddings)])
    given = {id(weight) for weight in backbone.token_embedding.weights}
    values = {weight.path: weight for weight in task.weights}
    for weight in new.weights:
        if id(weight) not in given and "seed_generator" not in weight.path:
            weight.assign(values[weight.path])
    return new
