"""The tests that need several devices run in a separate process."""

from pathlib import Path


def test_numbers_name_their_shard(in_process):
    program = Path(__file__).with_name("on_shards.py")
    done = in_process(
        ["-m", "pytest", "-q", "-p", "no:nbval", "-p", "no:cacheprovider"], program, devices=4
    )
    assert "6 passed" in done.stdout
