"""The planted mistakes of `make mutants` fit the code; whether a test notices them, it tells."""

import pytest

from tests.mutants import ROOT, mutants


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_old_text_of_a_planted_mistake_occurs_once_in_its_file(mutant):
    assert mutant.is_at_home(ROOT)
    assert mutant.old != mutant.new
