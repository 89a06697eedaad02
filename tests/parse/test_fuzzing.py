"""Every parser accepts any bytes. See `fuzzing` for the properties."""

import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzzing import SEEDS, TARGETS

WORDS = sorted(
    {
        seed[at : at + size]
        for seeds in SEEDS.values()
        for seed in seeds
        for size in (1, 6)
        for at in range(0, len(seed), 3)
    }
)


def mutated(name: str) -> st.SearchStrategy[bytes]:
    """Valid input with bytes removed and inserted, or random bytes."""

    def mutate(seed: bytes, at: int, cut: int, put: bytes) -> bytes:
        return seed[: at % (len(seed) + 1)] + put + seed[at % (len(seed) + 1) + cut :]

    grown = st.builds(
        mutate, st.sampled_from(SEEDS[name]), st.integers(0, 500), st.integers(0, 9), st.binary(max_size=9)
    )
    return grown | st.binary(max_size=200) | st.lists(st.sampled_from(WORDS), max_size=40).map(b"".join)


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_accepted(name: str) -> None:
    @given(mutated(name))
    def holds(data: bytes) -> None:
        TARGETS[name](data)

    holds()


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_accepts_its_seeds(name: str) -> None:
    for seed in SEEDS[name]:
        TARGETS[name](seed)


def test_the_fuzzer_knows_every_target() -> None:
    script = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "fuzz"), run_name="fuzz")
    assert set(script["TARGETS"]) == set(TARGETS) == set(SEEDS)
