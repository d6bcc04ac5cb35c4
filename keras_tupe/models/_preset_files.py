"""Files of a preset, in a form that KerasHub can load."""

import json
import pathlib


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
