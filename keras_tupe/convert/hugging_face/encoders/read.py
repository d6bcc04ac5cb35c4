"""Encoders of Hugging Face, read by their record."""

from keras_tupe.convert.bert.fill import fill
from keras_tupe.convert.hugging_face.config import read_json
from keras_tupe.convert.hugging_face.config_check import ConfigCheck
from keras_tupe.convert.hugging_face.encoders._encoder import ACTIVATIONS
from keras_tupe.convert.hugging_face.released import (
    checked_folder,
    left_out,
    name_bias,
    plain_names,
    rounding,
)
from keras_tupe.convert.hugging_face.trunk_config import (
    NO_DECODER,
    check_trunk,
    trunk_arguments,
    trunk_notes,
)
from keras_tupe.convert.hugging_face.weights import read_hf_weights
from keras_tupe.convert.tokenizer_files import preprocessor_of, read_vocabulary
from keras_tupe.models import TupeBackbone, TupeMaskedLM, TupeTokenDiscriminator
from keras_tupe.models.presets.size_check import check_sizes


def read_encoder(encoder, folder, dtype=None):
    """Returns a model with the weights of a folder, and what became of them.

    Args:
        encoder: the `Encoder` record of its kind.
        folder: path of a local folder with `config.json` and the weights, in safetensors or torch's
            format, whole or in parts. Nothing in it is run, and torch is not needed.
        dtype: Keras dtype policy of the model. Defaults to the global one.

    Returns:
        `(model, report)`: a `TupeMaskedLM`, or of a discriminator a `TupeTokenDiscriminator`, and a
        `Report`. Heads of other tasks are dropped. A missing masked-LM head or pooler is
        initialized and reported as new.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: naming all that is not supported, missing, left over or of another shape; if
            the output matrix is not the token embedding; if the vocabulary has another size.
    """
    folder = checked_folder(folder)
    arguments, config, notes = read_config(encoder, folder / "config.json")
    tokenizer, more = read_vocabulary(folder, arguments["vocabulary_size"], encoder.frame)
    names, found = plain_names(read_hf_weights(folder), encoder.prefix)
    name_bias(names, found, encoder.bias, f"{encoder.decoder}.bias")
    check_sizes(arguments, [value.shape for value in found.values()], repr(str(folder)), slack=2)
    released = dict(found)
    dropped = left_out(found, encoder.tied, encoder.dropped)
    dropped |= encoder.change(names, found, arguments, config)
    backbone = TupeBackbone(**arguments, dtype=dtype)
    model = _task(encoder, backbone, tokenizer, found)
    notes = (*notes, *more, *rounding(released, backbone))
    layout, absent = encoder.layout(backbone), encoder.absent(backbone)
    return model, fill(model, found, layout, names, dropped, notes, absent)


def _task(encoder, backbone, tokenizer, found):
    """Returns a model with the head that the weights are for."""
    is_generator = encoder.bias in found
    if is_generator or not any(name.startswith(encoder.discriminator or " ") for name in found):
        activation = backbone.activation if encoder.head_follows else "gelu"
        return TupeMaskedLM(backbone, preprocessor_of(tokenizer, backbone), activation)
    if backbone.activation != "gelu":
        raise ValueError(
            "The head of a discriminator has the exact GELU here, and there the activation of the "
            "blocks: hidden_act must be 'gelu' where there is such a head. Received: a "
            f"hidden_act that is here {backbone.activation!r}"
        )
    kind = TupeTokenDiscriminator.preprocessor_cls
    return TupeTokenDiscriminator(backbone, preprocessor_of(tokenizer, backbone, kind))


def read_config(encoder, path):
    """Returns the arguments of `TupeBackbone` that a configuration asks for, and notes.

    Args:
        encoder: the `Encoder` record of its kind.
        path: its `config.json`.

    Returns:
        `(arguments, config, notes)`: a dictionary, the complete configuration, and sentences for
        the report.

    Raises:
        ValueError: naming all that our encoder cannot do.
        FileNotFoundError: if there is no such file.
    """
    config = read_json(path)
    check = ConfigCheck(config)
    check.model_type(encoder.model_type)
    check.architectures(encoder.architectures)
    fixed = {**NO_DECODER, **encoder.fixed}
    check.fixed(fixed)
    check.expect(
        "hidden_act",
        lambda value: isinstance(value, str) and value in ACTIVATIONS,
        f"one of {list(ACTIVATIONS)}",
    )
    check_trunk(check, encoder.integers)
    config = {**encoder.defaults, **config}
    encoder.check(check, config)
    check.end(path)
    arguments = {
        **trunk_arguments(config),
        "activation": ACTIVATIONS[config["hidden_act"]],
        **encoder.arguments(config),
    }
    notes = trunk_notes(config, encoder.defaults, fixed, encoder.without_effect)
    return arguments, config, [*encoder.notes(config), *notes]
