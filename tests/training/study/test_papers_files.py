import re

import experiment_cases as cases
import pytest

from training.command.variant import parse
from training.finetune.glue.protocol import COLUMNS, PROTOCOLS
from training.studies.papers.definition import SCALES, Experiment, find, names
from training.studies.papers.report import claims, noise, said, versions
from training.studies.papers.toml_tables import read_table

NAMES = (
    "diet-table2",
    "huang-graft",
    "huang-lengths",
    "huang-table2",
    "huang-table3",
    "huang-table4-clip",
    "tupe-ablation",
    "tupe-figure4",
    "tupe-table1",
)


OWN = ("causal-lengths",)  # which compare with no paper's numbers
NAMED = '[scales.laptop.pretrain]\nconfig = "laptop"\n'


def check(text):
    """Returns what is wrong with the text of an experiment."""
    return read_table(Experiment, cases.entries(text))[1]


def test_the_experiments_are_those_of_the_papers():
    assert sorted(names()) == sorted([*NAMES, *OWN])
    assert not any(find(name).tables for name in OWN)


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_has_every_scale_its_source_and_its_question(name):
    experiment = find(name)
    assert [s for s in SCALES if s in experiment.scales] == [*experiment.scales]
    assert {*SCALES} - {*experiment.scales} <= {"pretrained", "released"}
    assert experiment.question.endswith("?")
    assert experiment.source.url.startswith("https://arxiv.org/abs/")
    assert experiment.unknown
    for scale in experiment.scales.values():
        assert all(sentence.endswith(".") for sentence in [*scale.differs, *experiment.unknown])


@pytest.mark.parametrize("name", NAMES)
def test_every_row_of_a_paper_names_a_method_that_is_run_at_its_own_scale(name):
    experiment = find(name)
    first = experiment.paper[0]
    answered = {parse(row.position).label for row in first.rows if row.position}
    assert answered >= {parse(text).label for text in experiment.scales["paper"].positions}


def test_averages_in_the_tables_are_those_of_their_cells():
    rows = {
        (t.source, row.name): row.values
        for n in NAMES
        for t in find(n).paper
        for row in t.rows
        if t.headline == "Avg"
    }
    assert len(rows) == 2 * 8
    for *cells, average in rows.values():
        assert len(cells) == 9
        assert abs(sum(cells) / 9 - average) < 0.011


def test_the_disagreement_is_that_of_the_issue():
    for name in ("tupe-table1", "diet-table2"):
        found = claims(find(name))
        assert {(one["who"], one["against"]): one["difference"] for one in found} == {
            ("Ke et al. 2021", "relative"): 1.38,
            ("Chen et al. 2021", "relative"): 0.0,
            ("Ke et al. 2021", "absolute"): 2.08,
            ("Chen et al. 2021", "absolute"): 0.4,
        }


def test_claims_are_checked_against_the_papers_own_rows():
    found = {one["text"]: list(one["differences"].values()) for one in said(find("tupe-table1"))}
    assert found["TUPE-R is better than BERT-R"] == [1.38, 1.24]
    assert found["with 30 % of the steps TUPE-R is better than BERT-R"] == [0.02, 0.15]
    assert found["with 30 % of the steps TUPE-A is better than BERT-A"] == [0.37, -0.01]
    (pair,) = versions(find("tupe-table1"))
    apart = noise(*pair)
    assert apart["rows"] == 8
    assert apart["columns"]["Avg"] == {"sd": 0.18, "largest": 0.51}
    assert apart["columns"]["RTE"] == {"sd": 1.33, "largest": 3.09}
    assert apart["columns"]["CoLA"] == {"sd": 0.65, "largest": 1.58}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Nobody 1999, Table 7", "Huang et al. 2020, Table 4", None),
        ('name = "new", position', 'name = "k = 2", position', "[82.17, 89.19]. Received"),
        ("[source]", 'tables = ["ke-iclt"]\n[source]', "the nearest is 'ke-iclr'"),
        ("[source]", "tables = 3\n[source]", "tables must be a list of texts. Received: 3"),
    ],
)
def test_numbers_of_a_known_source_are_those_that_it_prints(old, new, expected, tmp_path):
    text = cases.TEXT.replace("Nobody 1999, Table 7", "Huang et al. 2020, Table 4")
    text = text.replace('row = "new"', 'row = "old"')
    path = cases.write(tmp_path, text.replace(old, new))
    if expected is None:
        assert find(str(path)).tables
        return
    with pytest.raises(ValueError, match=re.escape(expected)):
        find(str(path))


def test_the_papers_scales_are_the_papers_settings():
    tupe = find("tupe-table1").scales["paper"]
    values = tupe.pretrain
    assert (values.steps, values.batch_size, values.length) == (1_000_000, 256, 512)
    assert (values.learning_rate, values.warmup_steps) == (1e-4, 10_000)
    protocol = PROTOCOLS["tupe"]
    assert tuple(tupe.glue.learning_rates) == protocol.learning_rates
    assert (tupe.glue.seeds, tupe.glue.epochs) == (protocol.seeds, None)
    assert {column.task for column in COLUMNS.values()} == set(tupe.glue.tasks)
    diet = find("diet-table2").scales["paper"].pretrain
    assert (diet.steps, diet.batch_size, diet.length) == (500_000, 4096, 128)
    assert find("huang-lengths").scales["paper"].squad.lengths == [512, 576, 640, 704]
    huang = find("huang-table3").scales["paper"]
    assert huang.pretrain.whole_word is True
    assert {COLUMNS[name].task for name in PROTOCOLS["huang"].columns} == set(huang.glue.tasks)


def test_lengths_have_the_papers_ratios_at_every_scale():
    for name in ("huang-lengths", "huang-graft"):
        for scale in find(name).scales.values():
            ratios = [length / scale.length for length in scale.squad.lengths]
            assert ratios[0] == 1
            assert sorted({*ratios} & {1, 1.125, 1.25, 1.375}) == ratios


def test_a_file_of_ones_own_is_an_experiment(tmp_path):
    experiment = find(str(cases.write(tmp_path)))
    assert (experiment.name, experiment.paper[0].value("new", "Mean")) == ("nobody", 72.5)
    scale = experiment.scales["laptop"]
    assert scale.glue.batch_size == 32  # a default
    assert scale.pretrain.beta_2 == 0.999
    named = cases.write(tmp_path, cases.TEXT.replace("[scales.laptop.pretrain]\n", NAMED), "named")
    assert find(str(named)).scales["laptop"].pretrain.beta_2 == 0.98


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("question", "qestion", "nearest known key is 'question'"),
        ('protocol = ["Everything was done twice."]', "protocol = 3", "a list of texts"),
        (
            '"qkr_4:k=3" },\n]\n\n[source]',
            '"qkr_9" },\n]\n\n[source]',
            "Received: 'qkr_9'",
        ),
        ("values = [72.5, 61]", "values = [72.5]", "a value for each of the 2 columns"),
        ('headline = "Mean"', 'headline = "Avg"', "must be one of ['Mean', 'EM']"),
        ('row = "new"', 'row = "newer"', "two rows and a column"),
        ('contrasts = [{ against = "old"', 'contrasts = [{ against = "it"', "that of a claim"),
        (
            "[scales.laptop]",
            "[scales.lapto]\nx = 1\n[scales.laptop]",
            "nearest known key is 'laptop'",
        ),
        ("steps = 300", "steps = 3.5", "steps in [scales.laptop.pretrain] must be an integer"),
        ("learning_rate = 1e-3", 'config = "laptob"', "the nearest is 'laptop'"),
        ("batch_size = 4", "batch = 4", "nearest known key is 'batch_size'"),
        ('"rte", "mrpc"', '"rte", "mrpd"', "the nearest is 'mrpc'"),
        ('protocol = "huang"', 'protocol = "hwang"', "must be one of ['tupe', 'huang']"),
        ('precision = "float32"', 'precision = "int8"', "precision in [scales.laptop] must be"),
        ("seeds = 3", "seeds = 0", "an integer >= 1"),
        ("seeds = 3", "", "seeds in [scales.laptop.pretrain] must be an integer >= 1"),
        ('question = "Does', 'question = 3 # "Does', "question in the file must be a text. Rec"),
        ('place = "Table 7"', "", "[source] must have place, a text. Received: none"),
        ("learning_rates = [1e-4]", "learning_rates = []", "must be a list of numbers above 0"),
        ("learning_rates = [1e-4]", "learning_rates = [0]", "must be a list of numbers above 0"),
        ("limit = 8", "limit = true", "must be an integer >= 1. Received: True"),
        ("contrasts = [{", "contrasts = [] # [{", "contrasts in [disagreement] must be a list of"),
        ("values = [71.25, 60]", 'values = [71.25, "60"]', "values in [paper.1.rows.1] must be a"),
    ],
)
def test_a_mistake_in_a_file_is_named(old, new, expected):
    assert old in cases.TEXT
    found = check(cases.TEXT.replace(old, new))
    assert any(expected in sentence for sentence in found), found


def test_a_scale_trains_new_models_or_takes_a_preset():
    neither = cases.without(cases.TEXT, "[scales.laptop.pretrain]", "[scales.laptop.glue]")
    alone = cases.graft_text().replace('    { name = "old", position = "absolute" },\n', "")
    many = cases.graft_text().replace("seeds = 1\nsteps", "seeds = 2\nsteps")
    headless = cases.TEXT.replace("steps = 300", "steps = 300\nhead_steps = 5")
    for text, expected in (
        (alone, "must have two variants"),
        (neither, "must have pretrain, or preset and variants with a checkpoint each"),
        (many, "must have pretrain with seeds = 1"),
        (headless, "has head_steps and must have a preset"),
    ):
        assert any(expected in sentence for sentence in check(text)), expected
    for text in (cases.graft_text(), cases.lengths_text()):
        assert check(text) == []
    wide = cases.graft_text().replace("doc_stride = 8", "doc_stride = 24")
    assert any("doc_stride" in sentence for sentence in check(wide))


def test_all_mistakes_of_a_file_are_named_at_once(tmp_path):
    text = cases.TEXT.replace("seeds = 3", "seeds = 0").replace('"rte"', '"rta"')
    with pytest.raises(ValueError, match="seeds in .*\n.*'rta'"):
        find(str(cases.write(tmp_path, text)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tupe-table", "the nearest is 'tupe-table1'"),
        ("nowhere.toml", "readable TOML file: No such file or directory. Received: 'nowhere.toml'"),
    ],
)
def test_an_unknown_experiment_is_answered_with_the_nearest(name, expected):
    with pytest.raises(ValueError, match=expected):
        find(name)
