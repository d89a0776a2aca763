"""How well the rules read answers that their authors had not seen, held to what was asked of them.

`tests/data/readings/README.md` says where the answers and their labels come from.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCHMARKS))
    from answers import Reading, Shares, read_by_rules, read_row, shares_of

DATA = Path(__file__).parent.parent / "data" / "readings"
LEAST_AGREEMENT = {"choice": 0.92, "short": 0.88, "formula": 0.91, "premise": 0.87}
LEAST_SURE = {"choice": 0.80, "short": 0.75, "formula": 0.75, "premise": 0.75}
MOST_WRONG_WAY = 0.15
LEAST_SURE_AGREEMENT = 0.97
LEAST_UNSURE_AGREEMENT = 0.60
MOST_BIAS_POINTS = 4.0


@pytest.fixture(scope="module")
def readings() -> list[Reading]:
    lines = (DATA / "held_out.jsonl").read_text(encoding="utf-8").splitlines()
    answers = [read_row(json.loads(line), place) for place, line in enumerate(lines)]
    return [read_by_rules(answer) for answer in answers if answer.label != "unclear"]


@pytest.mark.parametrize("kind", sorted(LEAST_AGREEMENT))
def test_unseen_answers_are_read_as_people_read_them(
    readings: list[Reading], kind: str
) -> None:
    shares: Shares = shares_of(
        reading for reading in readings if reading.answer.kind == kind
    )
    assert shares.answers >= 190
    assert shares.agree >= LEAST_AGREEMENT[kind]
    assert max(shares.missed, shares.invented) <= MOST_WRONG_WAY
    assert shares.sure >= LEAST_SURE[kind]
    assert shares.sure_agree >= LEAST_SURE_AGREEMENT
    assert shares.unsure_agree >= LEAST_UNSURE_AGREEMENT
    assert abs(shares.bias) <= MOST_BIAS_POINTS
