"""The mistakes of `mutants.py` can still be made: what each replaces stands in its file once. (It runs them itself.)"""

from collections import Counter

import mutants
import pytest


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=str)
def test_what_a_mutant_replaces_stands_in_its_file_once(mutant):
    assert (mutants.ROOT / mutant.file).read_text().count(mutant.old) == 1
    assert mutant.new != mutant.old


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=str)
def test_the_tests_of_a_mutant_are_there(mutant):
    words = mutant.tests.split()
    file = "rust/core/tests/properties.rs" if words[0] == "--test" else words[0]
    text = (mutants.ROOT / file).read_text()
    if len(words) > 1:
        prefix = "fn " if words[0] == "--test" else "def test_"
        names = [line for line in text.splitlines() if prefix in line]
        assert any(words[-1] in name for name in names)


def test_all_mistakes_of_the_list_are_made():
    """STATISTICS 6.5."""
    assert len(Counter(mutant.name for mutant in mutants.MUTANTS)) == 9
