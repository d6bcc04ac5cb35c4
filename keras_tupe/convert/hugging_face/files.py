"""Files of a Hugging Face folder: JSON, and a new folder that is complete or not there."""

import contextlib
import json
import os

from keras_tupe import _json_file
from keras_tupe._new_folder import new_folder


def read_json(path):
    """Returns the dictionary in a JSON file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it holds something else.
    """
    try:
        return _json_file.read_json_object(path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise FileNotFoundError(
            "The folder of a converted model must hold this file. "
            f"Received: {os.fspath(path)!r}, which is not there"
        ) from error
    except ValueError as error:
        raise ValueError(
            f"The file must hold a JSON object: {error}. Received: {os.fspath(path)!r}"
        ) from None


def write_json(path, content):
    """Writes a dictionary as a JSON file."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


@contextlib.contextmanager
def new_hf_folder(folder, weights):
    """Makes a folder with weights; in the `with` block its path, to write more files into.

    Args:
        folder: path; it appears when all is written.
        weights: dictionary: name -> contiguous array.

    Raises:
        OSError: if the files cannot be written.
    """
    import safetensors
    import safetensors.numpy

    with new_folder(folder) as partial:
        yield partial
        path = partial / "model.safetensors"
        try:  # transformers refuses files that do not name their framework
            safetensors.numpy.save_file(weights, path, metadata={"format": "pt"})
        except safetensors.SafetensorError as error:
            raise OSError(
                "The weights cannot be written. Make room, or choose another folder. "
                f"Received: {os.fspath(folder)!r}; {error}"
            ) from error
