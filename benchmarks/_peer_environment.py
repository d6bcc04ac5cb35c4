"""The separate Python environment of the peer, Hugging Face's BERT on torch."""

from benchmarks._own_environment import OwnEnvironment

TRANSFORMERS = "4.57.6"  # the last with `relative_key_query`

_ENVIRONMENT = OwnEnvironment(
    name=f"peer-transformers-{TRANSFORMERS}",
    option="--peer-environment",
    what="the peer",
    cost="This may download gigabytes; if pip knows an index with CPU builds of torch, far less.",
    # `==` takes the CPU build, 2.13.0+cpu, where pip's indexes have it, else the full one.
    requirements=(f"transformers=={TRANSFORMERS}", "torch==2.13.0", "numpy"),
    check=f"import torch, transformers; assert transformers.__version__ == '{TRANSFORMERS}'",
)
default_folder = _ENVIRONMENT.default_folder
problem = _ENVIRONMENT.problem
ensure = _ENVIRONMENT.ensure
