"""The planted mistakes of `make mutants` fit the code; whether a test notices them, it tells."""

from tests.mutants import ROOT, mutants


def test_old_text_of_each_planted_mistake_occurs_once_in_its_file():
    assert [mutant.name for mutant in mutants() if not mutant.is_at_home(ROOT)] == []
    assert [mutant.name for mutant in mutants() if mutant.old == mutant.new] == []
