"""A checkpoint of any kind: read, given another positional method, written."""

from keras_tupe import convert
from keras_tupe._new_folder import new_folder
from training.command.folder_lock import FolderLock
from training.presets.folder import check_preset_space

_OPTIONS = ("dictionary", "num_global", "pair_head")


def convert_checkpoint(settings):
    """Converts a checkpoint; returns the reports. If it cannot be done, nothing is written."""
    options = {name: getattr(settings, name) for name in _OPTIONS}
    with FolderLock(settings.out, beside=True):
        model, report = convert.load(settings.source, **options)
        reports = [report] if report else []  # there is none on a preset of ours
        if settings.graft is not None:
            model, report = convert.graft_position(
                model, settings.graft, settings.method_options(), settings.graft_length
            )
            reports.append(report)
        if settings.format == "huggingface":
            convert.to_hf(model, settings.out, model_type=settings.model_type)
            return reports
        with new_folder(settings.out) as partial:
            check_preset_space(model, partial.parent)
            model.save_to_preset(str(partial))
    return reports
