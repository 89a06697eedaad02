"""Our named tuples behave as those of the standard library."""

import copy
import inspect
import pickle
from typing import NamedTuple as Standard

import msgspec
import pytest

from crawler.parse.named_tuple import NamedTuple


class Ours(NamedTuple):
    """A row."""

    number: int
    name: str = "none"
    more: tuple[int, ...] | None = None

    def doubled(self) -> int:
        return 2 * self.number


class Theirs(Standard):
    """A row."""

    number: int
    name: str = "none"
    more: tuple[int, ...] | None = None

    def doubled(self) -> int:
        return 2 * self.number


def test_rows_are_those_of_the_standard_library() -> None:
    for row, other in ((Ours(1), Theirs(1)), (Ours(1, more=(2,)), Theirs(1, more=(2,)))):
        assert tuple(row) == tuple(other)
        assert hash(row) == hash(other)
        assert repr(row) == repr(other).replace("Theirs", "Ours")
        assert row._asdict() == other._asdict()
        assert tuple(row._replace(name="x")) == tuple(other._replace(name="x"))
        assert row.doubled() == other.doubled()
        assert copy.deepcopy(row) == pickle.loads(pickle.dumps(row)) == row
        assert not hasattr(row, "__dict__")


def test_classes_are_those_of_the_standard_library() -> None:
    assert Ours._make((1, "x", None)) == Ours(1, "x")
    for name in ("_fields", "_field_defaults", "__match_args__", "__doc__", "__module__", "__annotations__"):
        assert getattr(Ours, name) == getattr(Theirs, name), name
    assert list(inspect.signature(Ours).parameters) == list(inspect.signature(Theirs).parameters)
    assert msgspec.json.decode(b'[1, "x"]', type=Ours) == Ours(1, "x")
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'["1"]', type=Ours)


def test_wrong_fields_of_a_named_tuple_are_refused() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'number'"):
        Ours(name="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Expected 3 arguments, got 1"):
        Ours._make((1,))
    with pytest.raises(ValueError, match="unexpected field names"):
        Ours(1)._replace(size=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Ours(1).number = 2  # type: ignore[misc]
