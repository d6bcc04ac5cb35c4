"""The studies, one file or folder each, which sets `STUDY`; see `training.study.study`."""
