"""Which parts of a model are trained, for a copy of the model."""

from keras_tupe._keras_private import all_layers
from keras_tupe.convert._assign import inner_path, weights_by_path

_OF_WEIGHTS = ("trainable", "regularizer", "constraint")


def copy_flags(old, new, kept):
    """Makes the parts that two models share trainable or frozen in the new one as in the old one.

    Weights take over their regularizers and constraints too. Layers that the new model alone has
    follow what they are part of.

    Args:
        old: a `TupeBackbone`, or a task with one.
        new: a model of the same class, which is changed.
        kept: paths of the weights that both models have.
    """
    shared = {
        path.rsplit("/", count)[0] for path in kept for count in range(1, path.count("/") + 1)
    }
    found = _layers_by_path(old)
    new.trainable = old.trainable
    if old is not getattr(old, "backbone", old):
        new.backbone.trainable = old.backbone.trainable
    # from the outside in, because a layer's flag goes down to all that is in it
    for path, layer in _layers_by_path(new).items():
        if path in shared and path in found:
            layer.trainable = found[path].trainable
    before, after = weights_by_path(old), weights_by_path(new)
    for path in kept:
        for name in _OF_WEIGHTS:
            setattr(after[path], name, getattr(before[path], name))


def _layers_by_path(model):
    """Returns the layers that are built, outer ones before those in them."""
    layers = all_layers(model, include_self=False)
    found = {inner_path(model, layer.path): layer for layer in layers if layer.path}
    return dict(sorted(found.items(), key=lambda item: item[0].count("/")))
