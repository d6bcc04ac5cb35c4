"""The quickstart's results: SavedModels, pictures, card."""

import dataclasses
import json

from keras import ops

from keras_tupe import TupeTokenizer
from keras_tupe.export import export_encoder, export_text_model, replaceable_folder, write_card
from training.command import pictures
from training.export.check import check_in_another_process, write_example
from training.pretrain.model import save_preset
from training.quickstart.plan import CHECK
from training.quickstart.recipe import LENGTH


def publish(settings, data, results, best, model, biases, command, stages):
    """Writes the folder of the run, checks it in another process, and moves it into place.

    Args:
        settings: settings of the run.
        data: its `QuickstartData`.
        results: list of `Result`.
        best: the `Result` of the exported model.
        model: its pre-trained `TupeMaskedLM`.
        biases: dictionary of method -> position bias `(num_heads, length, length)`.
        command: the command line, for the card.
        stages: the `Stages` of the command.

    Raises:
        RuntimeError: if the export does not answer as the model does.
    """
    with replaceable_folder(settings.out) as folder:
        export_encoder(model, folder)
        export_text_model(model, data.tokenizer, folder / "text")
        tokenizer = TupeTokenizer(vocabulary=data.tokenizer.pieces)
        save_preset(model, tokenizer, LENGTH, folder / "preset")
        inputs, _, _ = next(data.held_out.evaluation_batches())
        write_example(folder, model, {name: value[:4] for name, value in inputs.items()})
        curves = {result.position: (result.tokens, result.curve) for result in results}
        pictures.draw_curves(folder / "curves.png", curves)
        for name, bias in biases.items():
            title = f"{name}: learned position bias, after {results[0].tokens[-1]:,} tokens"
            pictures.draw_position_bias(folder / f"position_bias_{name}.png", bias, title)
        facts = {
            "command": command,
            "config": model.backbone.get_config(),
            "seed": settings.seed,
            "data": data.facts,
            "metrics": dataclasses.asdict(best),
            "all_methods": [dataclasses.asdict(result) for result in results],
        }
        write_card(folder, **json.loads(json.dumps(facts, default=str)))
        stages.begin(CHECK)
        check_in_another_process(folder, stages.say)


def position_bias(model):
    """Returns the position bias that a model has learned, or `None` if its method has none."""
    layer = model.backbone.position_bias
    if layer is None:
        return None
    hidden_states = ops.zeros((1, LENGTH, model.backbone.hidden_dim))
    return ops.convert_to_numpy(layer(hidden_states))[0]
