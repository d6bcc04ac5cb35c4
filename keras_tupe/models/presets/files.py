"""Files of a preset, in a form that KerasHub can load."""

import json
import pathlib

import keras
import keras_hub

_HUB_TASKS = {
    kind
    for kind in vars(keras_hub.models).values()
    if isinstance(kind, type) and issubclass(kind, keras_hub.models.Task)
}


def drop_mixed_policies(folder):
    """Rewrites the configurations of a preset that was saved under a mixed precision policy.

    The weights are float32 under such a policy, and KerasHub, which loads presets under the policy
    of the session, fails on its name. So the files say float32.

    Args:
        folder: what `save_to_preset` wrote.
    """
    for name in ("config.json", "task.json"):
        path = pathlib.Path(folder, name)
        if not path.is_file():
            continue
        content = json.loads(path.read_text(encoding="utf-8"))
        changed = _without_mixed_policies(content)
        if changed != content:
            path.write_text(json.dumps(changed, indent=4), encoding="utf-8")


def name_tasks(folder, backbone_class):
    """Rewrites which tasks there are for an encoder in the metadata of a preset.

    KerasHub takes the name of the first parent of each, which is ours.

    Args:
        folder: what `save_to_preset` wrote.
        backbone_class: class of the encoder.
    """
    path = pathlib.Path(folder, "metadata.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    tasks = {
        kind
        for kind in keras.saving.get_custom_objects().values()
        if isinstance(kind, type) and issubclass(kind, keras_hub.models.Task)
    }
    content["tasks"] = sorted(
        {
            next(parent.__name__ for parent in kind.mro() if parent in _HUB_TASKS)
            for kind in tasks
            if kind.backbone_cls is backbone_class
        }
    )
    path.write_text(json.dumps(content, indent=4), encoding="utf-8")


def _without_mixed_policies(value):
    if isinstance(value, list):
        return [_without_mixed_policies(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("class_name") == "DTypePolicy":
        policy = value.get("config", {})
        if str(policy.get("name")).startswith("mixed_"):
            return {**value, "config": {**policy, "name": "float32"}}
        return value
    return {key: _without_mixed_policies(item) for key, item in value.items()}
