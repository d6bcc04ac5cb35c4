"""Our encoders in the format of Hugging Face's, by their record."""

import keras
import numpy as np

from keras_tupe.convert._assign import weights_by_path
from keras_tupe.convert.hugging_face.encoders._encoder import ACTIVATIONS, ANY
from keras_tupe.convert.hugging_face.trunk_config import trunk_entries
from keras_tupe.convert.hugging_face.write import (
    backbone_and_tokenizer,
    new_hf_folder,
    other_head,
    refuse,
    their_arrays,
    write_json,
)
from keras_tupe.convert.tokenizer_files import special_ids, vocabulary_problems, write_vocabulary
from keras_tupe.models import TupeBackbone, TupeMaskedLM, TupeTokenDiscriminator

# Of every encoder, where its record does not say otherwise.
_EXPECTED = {
    "attention_pattern": "full",
    "normalize_first": False,
    "normalize_embeddings": True,
    "zero_padded_embeddings": False,
    "embedding_dim": None,
    "num_groups": None,
    "kept_heads": None,
}


def write_encoder(encoder, model, folder):
    """Writes a model in the format of a kind of encoder of Hugging Face.

    `transformers` loads it with the class for masked LM of that kind, a backbone alone with the
    class without a head. Reading it gives the same weights back, bit by bit; but for a pooler where
    the kind has none, which is left out.

    Args:
        encoder: the `Encoder` record of the kind.
        model: a `TupeMaskedLM` or a `TupeBackbone` that such an encoder can be; for ELECTRA also a
            `TupeTokenDiscriminator`.
        folder: path of a folder that does not exist yet; it appears when it is complete.

    Raises:
        TypeError: if `model` is another kind of model.
        ValueError: if the folder exists, or naming all that the kind of encoder cannot do.
        OSError: if the files cannot be written.
    """
    discriminators = (TupeTokenDiscriminator,) if encoder.discriminator else ()
    kinds = (TupeMaskedLM, *discriminators, TupeBackbone)
    backbone, tokenizer = backbone_and_tokenizer(model, kinds, folder)
    weights = weights_by_path(model)
    found = [*_problems(encoder, model, backbone), *_not_zero(encoder, backbone, weights)]
    refuse(encoder.name, [*found, *vocabulary_problems(tokenizer, backbone, encoder.frame)])
    ids = special_ids(tokenizer, encoder.ids)
    config = {**trunk_entries(backbone), **ids, **encoder.entries(backbone)}
    architecture = encoder.architectures[model is not backbone]
    if isinstance(model, TupeTokenDiscriminator):
        architecture = architecture.replace("MaskedLM", "PreTraining")
    config = {
        **config,
        "architectures": [architecture],
        "hidden_act": next(
            name for name, ours in ACTIVATIONS.items() if ours == backbone.activation
        ),
        "model_type": encoder.model_type,
    }
    layout = encoder.layout(backbone)
    weights = {path: weight for path, weight in weights.items() if path in layout}
    found = their_arrays(weights, layout, backbone.num_heads)
    encoder.change_back(found, backbone, config)
    if model is not backbone:
        found = {
            name if name.startswith(encoder.heads) else f"{encoder.prefix}{name}": found[name]
            for name in found
        }
    with new_hf_folder(folder, found) as partial:
        write_json(partial / "config.json", dict(sorted(config.items())))
        if tokenizer is not None:
            write_vocabulary(tokenizer, backbone, partial, encoder.frame)


def _problems(encoder, model, backbone):
    """Returns which attributes of a model the kind of encoder cannot have."""
    found = [
        f"{name}={getattr(backbone, name)!r} must be {value!r}"
        for name, value in {**_EXPECTED, **encoder.expected}.items()
        if value is not ANY and getattr(backbone, name) != value
    ]
    expected = backbone.activation if encoder.head_follows else "gelu"
    if isinstance(model, TupeTokenDiscriminator) and backbone.activation != "gelu":
        found.append(f"activation={backbone.activation!r} must be 'gelu', as its head's")
    found += other_head(model, expected)
    found += encoder.refused(backbone)
    if backbone.position == encoder.expected["position"]:
        options = backbone.position_options
        found += [
            f"{name}={options[name]!r} must be {value!r}"
            for name, value in encoder.options.items()
            if options[name] != value
        ]
    return found


def _not_zero(encoder, backbone, weights):
    """Returns which weights would be lost, since the kind of encoder has no place for them."""
    return [
        f"{path} must be zero: {reason}"
        for path, reason in encoder.absent(backbone).items()
        if path in weights and np.any(keras.ops.convert_to_numpy(weights[path]))
    ]
