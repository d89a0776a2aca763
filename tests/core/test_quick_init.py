"""Records with a quick constructor behave like any frozen dataclass."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from inspect import signature

import pytest

from evalwright.core.quick_init import quick_init
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Answer, Sample, SampleRecord, Score


@dataclass(frozen=True, slots=True)
class _Plain:
    name: str
    number: int = 3
    words: list[str] = field(default_factory=list, compare=False)


@quick_init
@dataclass(frozen=True, slots=True)
class _Quick:
    name: str
    number: int = 3
    words: list[str] = field(default_factory=list, compare=False)


@dataclass(frozen=True, slots=True)
class _Longer(_Quick):
    extra: str = ""


class _Named(_Quick):
    pass


def test_a_quick_record_is_like_a_plain_one() -> None:
    assert str(signature(_Quick)) == str(signature(_Plain))
    record = _Quick("a", words=["x"])
    plain = _Plain("a", words=["x"])
    assert repr(record) == repr(plain).replace("_Plain", "_Quick")
    assert type(record) is _Quick
    assert record == _Quick("a", 3)
    assert hash(record) == hash(plain)
    assert _Quick("a").words is not _Quick("a").words
    assert replace(record, number=4).number == 4
    assert pickle.loads(pickle.dumps(record)) == record
    assert copy.deepcopy(record).words == ["x"]
    with pytest.raises(TypeError, match=r"_Quick\.__init__\(\) missing"):
        _Quick()  # type: ignore[call-arg]
    longer = _Longer("a", extra="b")
    assert type(longer) is _Longer
    assert longer.extra == "b"
    named = _Named("a")
    assert type(named) is _Named
    assert (named.name, named.number, named.words) == ("a", 3, [])


@pytest.mark.parametrize(
    "record",
    [
        Usage(1, 2),
        Response("4", usage=Usage(8, 1)),
        Generate("a", 8),
        Message("user", "a"),
        Sample("1"),
        Answer("4"),
        Score(1.0),
        SampleRecord("task", 0, 0, Sample("1"), Answer("4"), {}),
    ],
)
def test_records_stay_frozen(record: Response) -> None:
    for part in fields(record):
        with pytest.raises(FrozenInstanceError):
            setattr(record, part.name, None)
    assert not hasattr(record, "__dict__")
    assert pickle.loads(pickle.dumps(record)) == record
