"""No damaged file is answered with anything but a value or a clear error."""

import pytest
from fuzz_engine import FINDING, Attack
from fuzz_rooms import all_readers


@pytest.mark.parametrize("reader", all_readers().values(), ids=lambda reader: reader.name)
def test_damaged_files_are_refused_clearly(reader, tmp_path):
    if not reader.quick:
        pytest.skip("in the long run only: python tests/fuzz")
    attack = Attack(reader, tmp_path / "files")
    attack.good()
    outcomes = [attack.execute(0, number) for number in range(reader.quick)]
    assert [outcome for outcome in outcomes if outcome.kind == FINDING] == []
