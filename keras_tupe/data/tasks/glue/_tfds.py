"""GLUE from TensorFlow Datasets."""


def read_tfds(task, split, data_dir):
    """Reads a split through TFDS; its builder downloads the data when it has not been prepared.

    Args:
        task: a `GlueTask`.
        split: name of a split.
        data_dir: TFDS's folder, or `None` for its default.

    Returns:
        `(texts, labels, indices)` as of `_glue_folder.read_folder`, in the order of the official
        files.
    """
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise ImportError(
            "source='tfds' needs TensorFlow Datasets. Install it (pip install "
            "tensorflow-datasets), or give a folder with GLUE's official TSV files. "
            "Received: source='tfds'"
        ) from error

    builder = tfds.builder(f"glue/{task.name}", data_dir=data_dir)
    if not builder.is_prepared():
        # A format that can be read without TensorFlow.
        builder = tfds.builder(f"glue/{task.name}", data_dir=data_dir, file_format="array_record")
        builder.download_and_prepare()
    if split not in builder.info.splits:
        raise ValueError(
            f"TFDS's folder lacks the split {split!r} of {builder.name}/{task.name}; prepare it "
            f"again. Received: {str(builder.data_path)!r}, with {sorted(builder.info.splits)}"
        )
    examples = sorted(_examples(tfds, builder, split), key=lambda example: int(example["idx"]))
    columns = task.tfds_columns or task.columns
    texts = [[example[column].decode().strip() for example in examples] for column in columns]
    indices = [int(example["idx"]) for example in examples]
    if split.startswith("test"):
        return texts, None, indices
    ids = _class_ids(task, builder)
    labels = [example["label"] for example in examples]
    return texts, [float(label) if ids is None else ids[label] for label in labels], indices


def _examples(tfds, builder, split):
    try:
        return list(builder.as_data_source(split))
    except NotImplementedError:  # stored in a format without random access
        return list(tfds.as_numpy(builder.as_dataset(split)))


def _class_ids(task, builder):
    """Our id of each class of TFDS, found by its name; `None` for a regression."""
    if task.classes is None:
        return None
    names = builder.info.features["label"].names
    if sorted(names) != sorted(task.classes):
        raise ValueError(
            f"TFDS's builder must have the classes {list(task.classes)}; install another version "
            f"of it. Received: classes {names}"
        )
    return [task.classes.index(name) for name in names]
