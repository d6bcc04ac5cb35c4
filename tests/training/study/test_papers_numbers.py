"""The papers' numbers and settings, written down a second time, against the experiments' files."""

import dataclasses

import pytest

from training.command.settings import read_config
from training.finetune.glue.protocol import PROTOCOLS
from training.finetune.glue.runs import changes
from training.finetune.tasks.glue import Settings as GlueSettings
from training.finetune.tasks.squad import Settings as SquadSettings
from training.pretrain.settings import Settings as PretrainSettings
from training.studies.papers.definition import SCALES, find, names

# Source of a table -> columns, and a line for each row: name | method that answers to it | values.
TABLES = {
    "Ke et al. 2021, ICLR, Table 1": (
        "MNLI-m MNLI-mm QNLI QQP SST-2 CoLA MRPC RTE STS-B Avg",
        """
        BERT-A 1M         | absolute        | 84.93 84.91 91.34 91.04 92.88 55.19 88.29 68.61 89.43 82.96
        BERT-R 1M         | bert_r          | 85.81 85.84 92.16 91.12 92.90 55.43 89.26 71.46 88.94 83.66
        TUPE-A 1M         | tupe_a          | 86.05 85.99 91.92 91.16 93.19 63.09 88.37 71.61 88.88 84.47
        TUPE-R 1M         | tupe_r          | 86.21 86.19 92.17 91.30 93.26 63.56 89.89 73.56 89.23 85.04
        TUPE-A mid 300k   |                 | 84.76 84.83 90.96 91.00 92.25 62.13 87.1  68.79 88.16 83.33
        TUPE-R mid 300k   |                 | 84.86 85.21 91.23 91.14 92.41 62.47 87.29 69.85 88.63 83.68
        TUPE-A tie-cls 1M | tupe_a_tied_cls | 85.91 85.73 91.90 91.05 93.17 59.46 88.53 69.54 88.97 83.81
        BERT-A^d 1M       | bert_ad         | 85.26 85.28 91.56 91.02 92.70 59.73 88.46 71.31 87.47 83.64
        """,  # noqa: E501
    ),
    "Ke et al. 2020, preprint (arXiv v1), Table 2": (
        "MNLI-m MNLI-mm QNLI QQP SST-2 CoLA MRPC RTE STS-B Avg",
        """
        BERT-A 1M         | absolute        | 84.77 84.95 91.78 90.99 92.75 56.77 87.90 71.70 89.60 83.47
        BERT-R 1M         | bert_r          | 86.01 85.86 92.20 91.17 92.86 56.97 88.62 70.34 88.87 83.66
        TUPE-A 1M         | tupe_a          | 85.96 85.96 91.86 91.11 93.08 63.36 88.54 71.54 88.93 84.48
        TUPE-R 1M         | tupe_r          | 86.26 86.12 92.48 91.32 93.08 63.72 89.98 71.77 89.33 84.90
        TUPE-A mid 300k   |                 | 84.71 84.75 90.97 91.08 92.30 62.48 87.66 68.91 88.32 83.46
        TUPE-R mid 300k   |                 | 84.97 85.15 91.28 91.17 92.75 62.66 87.74 69.85 88.74 83.81
        TUPE-A tie-cls 1M | tupe_a_tied_cls | 86.03 85.79 91.97 91.12 92.86 59.02 88.86 69.64 88.78 83.79
        BERT-A^d 1M       | bert_ad         | 85.43 85.23 91.14 91.00 92.63 60.32 87.82 71.58 87.55 83.63
        """,  # noqa: E501
    ),
    "Chen et al. 2021, an independent re-run, Table 2": (
        "Avg-of-six CoLA",
        """
        absolute | absolute | 84.8 58.7
        Shaw     | shaw     | 85.2 59.8
        T5       | t5       | 85.2 59.6
        TUPE     | tupe_r   | 85.2 59.6
        """,
    ),
    "Huang et al. 2020, Table 2": (
        "EM F1",
        """
        BERT (Devlin et al. 2019) |          | 80.8  88.5
        absolute                  | absolute | 81.58 88.59
        Shaw                      | shaw:share_heads=true     | 82.38 89.37
        method 1                  | qkr_1    | 80.82 87.96
        method 2                  | qkr_2    | 81.44 88.86
        method 3                  | qkr_3:share_heads=true    | 83.71 90.50
        method 4                  | qkr_4:share_heads=true    | 83.63 90.53
        """,
    ),
    "Huang et al., page in transformers v4.57": (
        "F1",
        """
        Shaw                         | shaw:share_heads=true  | 89.51
        method 4                     | qkr_4:share_heads=true | 90.55
        method 4, 6 sequences a step | qkr_4:share_heads=true | 90.71
        method 4, 384 tokens         | qkr_4:share_heads=true | 90.34
        """,
    ),
    "Huang et al. 2020, Table 3": (
        "MNLI-m MNLI-mm QQP SST-2 MRPC",
        """
        BERT (Devlin et al. 2019) |          | 84.6  83.4  71.2  93.5  88.9
        absolute                  | absolute | 83.57 83.65 87.64 90.48 88.40
        Shaw                      | shaw:share_heads=true     | 84.10 84.07 87.77 90.94 88.68
        method 1                  | qkr_1    | 83.84 84.06 87.52 91.97 88.65
        method 2                  | qkr_2    | 83.68 83.78 87.50 91.05 87.34
        method 3                  | qkr_3:share_heads=true    | 84.81 84.68 87.11 91.39 82.86
        method 4                  | qkr_4:share_heads=true    | 84.45 84.51 87.41 91.74 88.88
        """,
    ),
    "Huang et al. 2020, Table 4": (
        "EM F1",
        """
        k = 2   | qkr_4:k=2:share_heads=true   | 82.17 89.19
        k = 4   | qkr_4:k=4:share_heads=true   | 82.44 89.37
        k = 8   | qkr_4:k=8:share_heads=true   | 82.64 89.59
        k = 16  | qkr_4:k=16:share_heads=true  | 83.42 90.18
        k = 32  | qkr_4:k=32:share_heads=true  | 83.58 90.30
        k = 64  | qkr_4:k=64:share_heads=true  | 83.40 90.21
        k = 128 | qkr_4:k=128:share_heads=true | 83.20 90.03
        k = 256 | qkr_4:k=256:share_heads=true | 83.59 90.54
        k = 512 | qkr_4:share_heads=true       | 83.63 90.53
        """,
    ),
    "Huang et al. 2020, longer sequences; at 512 tokens Table 4": (
        "EM F1",
        """
        512 tokens | qkr_4:k=256:share_heads=true | 83.59 90.54
        576 tokens | qkr_4:k=256:share_heads=true | 83.80 90.71
        640 tokens | qkr_4:k=256:share_heads=true | 83.97 90.68
        704 tokens | qkr_4:k=256:share_heads=true | 83.44 90.32
        """,
    ),
    "Huang et al. 2020, Table 5": (
        "EM F1",
        """
        BERT (Devlin et al. 2019) |          | 84.1  90.9
        BERT whole-word           | absolute | 86.91 93.15
        method 4, 512 tokens      | qkr_4:share_heads=true    | 87.51 93.55
        method 4, 576 tokens      | qkr_4:share_heads=true    | 87.40 93.48
        method 4, 640 tokens      | qkr_4:share_heads=true    | 87.57 93.49
        method 4, 704 tokens      | qkr_4:share_heads=true    | 87.16 93.47
        """,
    ),
}
KE, CHEN = "Ke et al. 2021, ICLR, Table 1", "Chen et al. 2021, an independent re-run, Table 2"
PREPRINT = "Ke et al. 2020, preprint (arXiv v1), Table 2"
HUANG = "Huang et al. 2020, "
PAGE = "Huang et al., page in transformers v4.57"
# Experiment -> source of each of its tables.
EXPERIMENTS = {
    "diet-table2": {CHEN, KE, PREPRINT},
    "huang-graft": {HUANG + "Table 5"},
    "huang-lengths": {HUANG + "longer sequences; at 512 tokens Table 4"},
    "huang-table2": {HUANG + "Table 2", PAGE},
    "huang-table3": {HUANG + "Table 3"},
    "huang-table4-clip": {HUANG + "Table 4"},
    "tupe-ablation": {KE, PREPRINT},
    "tupe-figure4": {KE, PREPRINT},
    "tupe-table1": {KE, PREPRINT, CHEN},
}


def rows_of(source):
    """Returns a dictionary: name of a row -> (method, values)."""
    lines = [line.split("|") for line in TABLES[source][1].strip().splitlines()]
    return {
        name.strip(): (method.strip(), [float(x) for x in values.split()])
        for name, method, values in lines
    }


def test_every_experiment_is_checked():
    assert list(EXPERIMENTS) == [name for name in names() if find(name).tables]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_numbers_of_the_papers_are_as_they_are_printed(name):
    tables = {table.source: table for table in find(name).paper}
    assert set(tables) == EXPERIMENTS[name]
    for source in EXPERIMENTS[name]:
        columns = [column.name.replace(" ", "-") for column in tables[source].columns]
        assert columns == TABLES[source][0].split()
        found = {row.name: (row.position, row.values) for row in tables[source].rows}
        assert found == rows_of(source)


def test_the_copy_adds_up_as_the_papers_tables_do():
    both = [*rows_of(KE).values(), *rows_of(PREPRINT).values()]
    for *cells, average in (values for _, values in both):
        assert len(cells) == 9
        assert abs(sum(cells) / 9 - average) < 0.011  # two cells were rounded before the mean
    clip, main = rows_of(HUANG + "Table 4"), rows_of(HUANG + "Table 2")
    longer = rows_of(HUANG + "longer sequences; at 512 tokens Table 4")
    assert clip["k = 512"][1] == main["method 4"][1]
    assert clip["k = 256"][1] == longer["512 tokens"][1]


# What the papers, and TUPE's released code, say of the settings at their own scale. What is not
# here is not said there, or not known to us.
TUPE_SETTINGS = {
    "pretrain": {
        "size": "base",
        "normalize_first": False,
        "initializer_range": 0.02,  # released code
        "layer_norm_epsilon": 1e-5,  # released code
        "length": 512,
        "max_sequence_length": 512,
        "vocabulary_size": 32_768,
        "mask_rate": 0.15,
        "whole_word": False,
        "mask_special": True,  # released code
        "dropout": 0.1,
        "batch_size": 256,
        "steps": 1_000_000,
        "warmup_steps": 10_000,
        "learning_rate": 1e-4,
        "weight_decay": 0.01,
        "decay_all": True,  # released code
        "beta_1": 0.9,
        "beta_2": 0.999,
        "clip_norm": 1.0,
        "precision": "float32",
    },
    "glue": {
        "tasks": {"mnli", "qqp", "qnli", "sst2", "cola", "mrpc", "rte", "stsb"},
        "length": 512,
        "batch_size": 32,
        "learning_rates": {2e-5, 3e-5, 4e-5, 5e-5},
        "seeds": 5,
        "warmup": 0.06,
        "epochs": {"mnli": 5, "qqp": 5, "qnli": 5}
        | dict.fromkeys(("sst2", "cola", "mrpc", "rte", "stsb"), 10),
    },
}
HUANG_BASE = {
    "size": "base",
    "length": 512,
    "max_sequence_length": 512,
    "whole_word": True,
    "learning_rate": 1e-4,
    "precision": "float32",
}
HUANG_TASKS = {"mnli", "qqp", "sst2", "mrpc"}
HUANG_GLUE = {
    "tasks": HUANG_TASKS,
    "batch_size": 32,
    "learning_rates": {3e-5},
    "epochs": dict.fromkeys(HUANG_TASKS, 3),
}
DIET_SETTINGS = {
    "pretrain": {
        "size": "base",
        "length": 128,
        "max_sequence_length": 128,
        "batch_size": 4096,
        "steps": 500_000,
        "precision": "float32",
    },
    "glue": {"tasks": {"mnli", "qqp", "qnli", "sst2", "cola", "stsb"}},
}
LENGTHS = [512, 576, 640, 704]
# Of the authors' page on their checkpoints.
HUANG_SQUAD = {
    "lengths": [512],
    "doc_stride": 128,
    "epochs": 2,
    "learning_rate": 3e-5,
    "batch_size": 48,
}
LONGER_SQUAD = {**HUANG_SQUAD, "lengths": LENGTHS}
STATED = {
    "diet-table2": DIET_SETTINGS,
    "huang-graft": {
        "preset": {"size": "large", "length": 512},
        "pretrain": {"length": 512, "whole_word": True, "precision": "float32"},
        "squad": LONGER_SQUAD,
    },
    "huang-lengths": {"pretrain": HUANG_BASE, "squad": LONGER_SQUAD},
    "huang-table2": {"pretrain": HUANG_BASE, "squad": HUANG_SQUAD},
    "huang-table3": {"pretrain": HUANG_BASE, "glue": HUANG_GLUE},
    "huang-table4-clip": {"pretrain": HUANG_BASE, "squad": HUANG_SQUAD},
    "tupe-ablation": TUPE_SETTINGS,
    "tupe-figure4": TUPE_SETTINGS,
    "tupe-table1": TUPE_SETTINGS,
}
# How a sentence names a setting, where that is not its name.
WORDS = {
    "normalize_first": "-LN",
    "initializer_range": "initial weights",
    "layer_norm_epsilon": "epsilon",
    "length": "tokens",
    "max_sequence_length": "tokens",
    "vocabulary_size": "pieces",
    "mask_rate": "15 %",
    "whole_word": "single tokens",
    "mask_special": "special tokens",
    "batch_size": "batch",
    "warmup_steps": "arm-up",
    "warmup": "arm-up",
    "learning_rate": "earning rate",
    "learning_rates": "earning rate",
    "decay_all": "LayerNorm and biases",
    "beta_1": "betas",
    "beta_2": "betas",
    "clip_norm": "clipping",
    "weight_decay": "weight decay",
    "precision": "mixed_bfloat16",
    "doc_stride": "windows",
    "max_question_length": "questions",
    "seeds": "stand behind a row",
}
OURS = (  # how, where and which model
    "position",
    "position_file",
    "position_options",
    "objective",
    "attention_pattern",
    "pattern_options",
    "embedding_dim",
    "num_groups",
    "memory_length",
    "segment_length",
    "preset",
    "trained",
    "seed",
    "micro_batches",
    "valid_batches",
)


def settings_of(scale):
    """Returns all that counts at a scale: part -> name of a setting -> value."""
    found = {}
    if scale.pretrain is not None:  # what a preset brings does not count
        counts = {*PretrainSettings().identity(), "length", "vocabulary_size", "seeds"} - {*OURS}
        values = {**vars(scale.pretrain), "precision": scale.precision}
        values["max_sequence_length"] = values["max_sequence_length"] or values["length"]
        brought = PretrainSettings().model_settings() if scale.preset else []
        found["pretrain"] = {name: values[name] for name in counts if name not in brought}
    if scale.preset is not None:
        found["preset"] = vars(scale.preset)
    if scale.glue is not None:
        protocol = PROTOCOLS[scale.glue.protocol]
        values = {name: getattr(scale.glue, name) for name in ("batch_size", "length", "seeds")}
        values["tasks"] = set(scale.glue.tasks)
        values["learning_rates"] = set(scale.glue.learning_rates)
        epochs = {task: scale.glue.epochs or protocol.epochs[task] for task in values["tasks"]}
        found["glue"] = {**values, "epochs": epochs, "warmup": protocol.warmup}
    if scale.squad is not None:
        # None is the whole of the questions
        found["squad"] = {k: v for k, v in vars(scale.squad).items() if v is not None}
    return found


def is_named(setting, sentences):
    return any(WORDS.get(setting, setting) in sentence for sentence in sentences)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_papers_scale_is_the_papers_or_says_where_it_is_not(name):
    experiment = find(name)
    scale, stated = experiment.scales["paper"], STATED[name]
    found = settings_of(scale)
    assert set(found) == set(stated)
    for part, values in found.items():
        assert set(stated[part]) <= set(values)
        for setting, value in values.items():
            where = (part, setting, value)
            if setting not in stated[part]:  # what is taken instead must be said
                assert is_named(setting, [*experiment.unknown, *scale.differs]), where
            elif stated[part][setting] != value:
                assert is_named(setting, scale.differs), where


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_shorter_row_is_said(name, scale):
    if scale not in find(name).scales:
        pytest.skip("there is no such scale")
    scale, stated = find(name).scales[scale], STATED[name]

    def is_said(length, start=""):
        return any(
            sentence.startswith(start) and f"{length} tokens" in sentence
            for sentence in scale.differs
        )

    if scale.length < stated.get("pretrain", stated.get("preset"))["length"]:
        assert is_said(scale.length)
    if scale.glue is not None and scale.glue.length < PROTOCOLS[scale.glue.protocol].length:
        assert is_said(scale.glue.length, "GLUE: ")
    if scale.squad is not None and scale.squad.lengths[0] < 512:
        lengths = ", ".join(map(str, scale.squad.lengths))
        assert is_said(lengths, "SQuAD at ")


@pytest.mark.parametrize("name", ["huang-graft", "huang-table2"])
def test_methods_are_not_clipped_where_the_paper_does_not_clip(name):
    for scale in find(name).scales.values():
        assert all(":k=" not in position for position in scale.positions)


def test_settings_that_are_left_out_are_the_papers():
    assert PROTOCOLS["tupe"].length == 512
    assert changes(GlueSettings().asked(), GlueSettings(), 512) == []
    assert changes(GlueSettings().asked(), GlueSettings(), 128) == ["length 128, not 512"]
    squad = SquadSettings()
    assert (squad.length, squad.epochs, squad.learning_rate, squad.batch_size) == (512, 2, 3e-5, 48)
    defaults, stated = PretrainSettings(), TUPE_SETTINGS["pretrain"]
    of_code = ("mask_special", "decay_all")  # both are said to differ, in tupe-base.toml
    for field in dataclasses.fields(defaults):
        if field.name in stated and field.name not in ("max_sequence_length", *of_code):
            assert getattr(defaults, field.name) == stated[field.name], field.name


def test_the_named_settings_are_the_papers():
    fields = dataclasses.fields(PretrainSettings)
    tupe, huang = (read_config(name, fields)[0] for name in ("tupe-base", "huang-base"))
    stated = {**TUPE_SETTINGS["pretrain"], "mask_special": False, "decay_all": False}
    assert {name: stated[name] for name in tupe if name in stated} == {
        name: value for name, value in tupe.items() if name in stated
    }
    assert tupe["keep_steps"] == "100000,300000,600000"
    for name in ("size", "max_sequence_length", "whole_word", "learning_rate"):
        assert huang[name] == HUANG_BASE[name]
    assert huang["layer_norm_epsilon"] == 1e-12  # BERT
