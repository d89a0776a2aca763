"""The analysis of answers: groups, frequent errors, words, lengths and examples, against counts
made by hand.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import contingency

from evalwright.analysis.answers import AnsweredItem, analyse, analyse_run, split_words
from evalwright.cli import main
from evalwright.core.samples import Score
from evalwright.reports.documents.analysis import analysis_document
from evalwright.reports.html import to_html
from evalwright.reports.markdown import to_markdown
from support.bounds import assert_grows_linearly, repeated
from support.runs import make_run


def item(number: int, score: float | None, answer: str, **more: Any) -> AnsweredItem:
    return AnsweredItem(f"i{number}", f"{number}번 질문", "서울", answer, score, **more)


ITEMS = [
    *(
        item(i, 1.0, f"수도는 서울이다 {i}", subset="지리", label="correct")
        for i in range(12)
    ),
    *(item(i, 0.0, "부산", subset="역사", label="incorrect") for i in range(12, 18)),
    *(
        item(
            i, 0.0, f"아마도 부산에서 {'그리고 ' * i}", subset="지리", label="incorrect"
        )
        for i in range(18, 22)
    ),
    item(22, None, "", subset="역사", label="rate limited"),
]


def test_counts() -> None:
    found = analyse(ITEMS, "수도")
    assert (found.n_right, found.n_wrong, found.score.n, found.score.n_missing) == (
        12,
        10,
        22,
        1,
    )
    assert found.labels == (("correct", 12), ("incorrect", 10), ("rate limited", 1))
    assert [(subset.name, subset.score.n) for subset in found.subsets] == [
        ("역사", 6),
        ("지리", 16),
    ]
    assert found.subsets[1].score.value == 0.75
    assert found.wrong_answers == (("부산", "서울", 6),)
    assert sum(part.score.n for part in found.lengths) == 22 and len(found.lengths) == 4
    assert len(found.examples_right) == len(found.examples_wrong) == 2
    assert analyse(reversed(ITEMS)).examples_wrong == found.examples_wrong


def test_words_of_wrong_answers_are_weighted_by_the_log_likelihood_ratio() -> None:
    found = analyse(ITEMS)
    first = found.words[0]
    # "부산" and "부산에서" are one word; it is in all ten wrong answers and in no right one.
    assert (first.word, first.wrong, first.right) == ("부산", 10, 0)
    expected = contingency.chi2_contingency(
        [[10, 0], [0, 12]], correction=False, lambda_="log-likelihood"
    )
    assert first.weight == pytest.approx(expected.statistic)
    assert "서울" not in [word.word for word in found.words]


def test_vocabulary_is_compared_at_equal_size() -> None:
    right, wrong = analyse(ITEMS).vocabulary
    assert right.answers == 12 and right.words == 36 and right.distinct == 14
    assert right.type_token_ratio == pytest.approx(14 / 36)
    assert wrong.words == sum(len(split_words(one.answer)) for one in ITEMS[12:22])
    # At equal size the words of the longer side that come first are counted.
    assert (
        right.same_size == right.type_token_ratio
        and wrong.same_size != wrong.type_token_ratio
    )


@pytest.mark.parametrize(
    ("word", "stem"),
    [("서울에서", "서울"), ("한라산은", "한라산"), ("나이", "나이"), ("국가", "국가"), ("학교", "학교"), ("대한민국으로", "대한민국")],
)  # fmt: skip
def test_particles_are_taken_off_longer_words_alone(word: str, stem: str) -> None:
    assert split_words(word) == [stem]


def test_options_by_their_place() -> None:
    items = [
        AnsweredItem(str(i), "q", "", "", float(i % 4 == 0), choice=0, gold=(i % 4,))
        for i in range(8)
    ]
    assert analyse(items).choices == (
        ("A", 8, 2),
        ("B", 0, 2),
        ("C", 0, 2),
        ("D", 0, 2),
    )


def test_scores_without_a_range_are_split_at_their_median() -> None:
    found = analyse([item(i, 10.0 * i, "x" * i) for i in range(10)])
    assert found.threshold == 50.0 and (found.n_right, found.n_wrong) == (5, 5)
    assert "at or above the median, 50" in to_markdown(analysis_document([found]))


@pytest.mark.parametrize(
    "items", [[], [item(1, None, "")], [item(1, 1.0, "")], [item(1, 0.0, "")]]
)
def test_little_data_gives_a_document(items: list[AnsweredItem]) -> None:
    found = analyse(items)
    assert math.isnan(found.score.value) or found.score.n == 1
    assert "<table" in to_html(analysis_document([found]))
    json.dumps(found.as_dict(), allow_nan=False)


def test_long_texts_take_little_time() -> None:
    assert_grows_linearly(
        lambda text: analyse([item(i, float(i % 2), text) for i in range(5)]),
        repeated("가나 다라에서 "),
    )


def test_a_run_and_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    scores: dict[str, Any] = {
        "one": [1, 0, None, 1],
        "two": [Score(0.4, "partly"), Score(0.8, "mostly")],
    }
    run = make_run(Path("runs"), scores=scores, domains=["땅", "<script>"], name="r")
    first, second = analyse_run(run)
    assert (first.name, first.n_right, first.n_wrong) == ("one", 2, 1) and len(
        first.subsets
    ) == 2
    assert (second.n_right, second.n_wrong) == (1, 1)
    assert main(["runs", "show", "r", "--analysis"]) == 0
    shown = capsys.readouterr().out
    assert "Answers to one" in shown and "Subsets, worst first" in shown
    assert main(["runs", "show", "r", "--analysis", "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == [
        "one",
        "two",
    ]
    assert "Answers to one" in str(run.report()) and "Usage" in str(run.report())
