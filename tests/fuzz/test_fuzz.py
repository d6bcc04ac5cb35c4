"""No damaged file is answered with anything but a value or a clear error."""

import fuzz_convert_readers
import fuzz_data_readers
import fuzz_model_readers
import fuzz_training_readers
import pytest
from fuzz_engine import FINDING, Attack

MODULES = (
    fuzz_data_readers,
    fuzz_convert_readers,
    fuzz_training_readers,
    fuzz_model_readers,
)
READERS = [reader for module in MODULES for reader in module.READERS]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_damaged_files_are_refused_clearly(reader, tmp_path):
    if not reader.quick:
        pytest.skip("in the long run only: python tests/fuzz")
    attack = Attack(reader, tmp_path / "files")
    attack.good()
    outcomes = [attack.execute(0, number) for number in range(reader.quick)]
    assert [outcome for outcome in outcomes if outcome.kind == FINDING] == []
