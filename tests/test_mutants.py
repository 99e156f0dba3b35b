"""The planted mistakes of `make mutants` fit the code; whether a test notices them, it tells."""

import pytest

from tests.mutants import mutants


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_old_text_of_a_planted_mistake_occurs_once_in_its_file(mutant):
    assert mutant.file.read_text("utf-8").count(mutant.old) == 1
    assert mutant.old != mutant.new
