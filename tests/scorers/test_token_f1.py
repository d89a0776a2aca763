"""Token F1 against numbers worked out by hand."""

from __future__ import annotations

import pytest

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample
from evalwright.scorers.token_f1 import token_f1


@pytest.mark.parametrize(
    ("text", "targets", "value"),
    [
        ("The red house.", ("red house",), 1.0),
        ("a red house by a lake", ("red house",), 2 * 0.5 * 1 / 1.5),
        ("house house", ("house",), 2 * 0.5 * 1 / 1.5),
        ("blue", ("red", "blue"), 1.0),
        ("well-known", ("well known",), 1.0),
        ("green", ("red",), 0.0),
        ("", ("red",), 0.0),
    ],
)
def test_values(text: str, targets: tuple[str, ...], value: float) -> None:
    assert token_f1(Sample("s", targets=targets), Answer(text)).value == pytest.approx(value, abs=1e-12)


def test_labels_and_parts() -> None:
    found = token_f1(Sample("s", targets=("red house",)), Answer("red barn"))
    assert (found.label, found.parts) == ("partial", {"precision": 0.5, "recall": 0.5})


def test_no_target_is_an_error() -> None:
    with pytest.raises(ScoringError, match="no target"):
        token_f1(Sample("s"), Answer("x"))
