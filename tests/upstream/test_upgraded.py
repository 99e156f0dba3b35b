"""The list of tests that fail with JAX's upgrade flags names tests that exist."""

from pathlib import Path

from tests.upstream.upgraded import expected_failures

ROOT = Path(__file__).parents[2]


def test_every_listed_test_exists_and_has_a_reason():
    listed = expected_failures()
    assert listed
    for test, reason in listed.items():
        file, _, name = test.partition("::")
        assert reason.endswith(".")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text("utf-8"), test
