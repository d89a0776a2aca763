"""The language penalty, by a table of replies with a reader's verdict, and how it is combined
with a score.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError, ScoringError, TaskError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.penalty import check_penalty, penalised
from evalwright.scorers.registry import bind
from evalwright.scorers.text.spoken import spoken
from evalwright.tasks.loading import load_task
from support.bounds import assert_grows_linearly, repeated

TABLE = Path(__file__).resolve().parent.parent / "data" / "spoken.jsonl"
SAMPLE = Sample("s", "대한민국의 수도는?", ("서울",), metadata={"language": "ko"})


def test_replies_against_a_reader() -> None:
    """share: whether a reader finds all of a reply in the language, a part or none of it."""
    rows = [json.loads(line) for line in TABLE.read_text("utf-8").splitlines()]
    assert len(rows) >= 80
    wrong = []
    for row in rows:
        share = spoken(row["text"], row["expected"]).share
        if row["share"] != ("all" if share == 1 else "part" if share else "none"):
            wrong.append((row, share))
    assert not wrong


@pytest.mark.parametrize(
    ("reply", "share"),
    [
        ("Hello world", 0), ("No answer", 0), ("King Sejong the Great", 0), ("Paris and London", 0), ("Answer: Seoul", 0), ("It is", 0),
        ("KAIST", 1), ("DNA", 1), ("DNA, RNA", 1), ("Paris", 1), ("Paris, London", 1), ("Steve Jobs", 1), ("(B) Paris", 1),
        ("Vitamin C", 1), ("42 km", 1), ("Yes", 1), ("정답: Seoul", 1), ("`Hello world`", 1),
    ],
)  # fmt: skip
def test_words_in_latin_letters_alone_are_no_korean_reply_but_names_may_be(
    reply: str, share: float
) -> None:
    assert spoken(reply, "ko").share == share


@pytest.mark.parametrize(
    ("reply", "penalty", "value", "share"),
    [
        ("서울", {}, 1.0, 1.0),
        ("서울입니다. 그곳은 매우 큽니다.", {}, 1.0, 1.0),
        ("The answer is 서울. It is a very large city.", {}, 0.0, 0.0),
        ("The answer is 서울. It is a very large city.", {"expected": "en"}, 1.0, 1.0),
        ("정답은 서울입니다. The capital of the country is very large.", {"combine": "gate"}, 0.0, 8 / 41),
        ("정답은 서울입니다. The capital of the country is very large.", {"combine": "gate", "least": 0.1}, 1.0, 8 / 41),
        ("정답은 서울입니다. The capital of the country is very large.", {}, 8 / 41, 8 / 41),
    ],
)  # fmt: skip
def test_how_it_is_combined(
    reply: str, penalty: dict[str, Any], value: float, share: float
) -> None:
    made: Any = bind(
        "exact-match", {"partial": True, "language_penalty": penalty}
    ).function(SAMPLE, Answer(reply))
    assert made.value == pytest.approx(value)
    assert made.parts == {"language": pytest.approx(share), "before": 1.0}
    assert made.label == "correct"


@pytest.mark.parametrize(
    ("reply", "code", "share"),
    [
        (
            "Transformer 모델은 attention mechanism을 사용하여 input sequence의 각 token을 처리합니다.",
            "ko",
            1.0,
        ),
        (
            "gradient descent optimizer learning rate batch size를 조정합니다.",
            "ko",
            1.0,
        ),
        ("The answer is 서울 because it is the capital.", "ko", 0.0),
        ("北京", "ko", 0.0),
        ("はい", "ko", 0.0),
        ("Привет", "ko", 0.0),
        ("Seoul", "ko", 1.0),
        ("東京", "ja", 1.0),
        (
            "このモデルは attention mechanism と feed forward network を使用します。",
            "ja",
            1.0,
        ),
        ("该模型使用 attention mechanism 和 feed forward network。", "zh", 1.0),
        ("东京です", "zh", 0.0),
    ],
)
def test_foreign_terms_are_the_languages_own_and_short_replies_in_another_script_are_not(
    reply: str, code: str, share: float
) -> None:
    assert spoken(reply, code).share == share


def test_what_is_below_nought_stays() -> None:
    below = Score(-2.0)
    found: Any = penalised(
        below, SAMPLE, Answer("I go to the school."), check_penalty({})
    )
    assert isinstance(found, Score)
    assert found.value == found.parts["before"] < 0


@pytest.mark.parametrize("kind", ["bleu", "chrf", "chrf++", "ter", "perplexity"])
def test_scores_that_no_penalty_changes_refuse_it_and_say_why(kind: str) -> None:
    with pytest.raises(ConfigurationError, match="made of counts over all samples"):
        bind(kind, {"language_penalty": {"expected": "ko"}})


def test_multiplied_values_make_no_pass_at_k_without_a_threshold(
    tmp_path: Path,
) -> None:
    def task(penalty: dict[str, Any], metric: dict[str, Any]) -> Path:
        (tmp_path / "a.jsonl").write_text(
            '{"input": "수도는?", "target": "서울", "language": "ko"}\n', "utf-8"
        )
        text = {
            "task": "a", "dataset": {"path": "a.jsonl"}, "prompt": {"user": "{{ input }}"}, "answer": {"draws": 2, "text": {"temperature": 0.7}},
            "scorers": [{"short-answer": {"language_penalty": penalty}}], "metrics": [{"pass@k": {"k": 2, **metric}}],
        }  # fmt: skip
        (tmp_path / "a.yaml").write_text(json.dumps(text), "utf-8")
        return tmp_path / "a.yaml"

    with pytest.raises(TaskError, match=r"combine: gate.*'pass@k'"):
        load_task(task({}, {}))
    for penalty, metric in (({"combine": "gate"}, {}), ({}, {"threshold": 0.5})):
        assert load_task(task(penalty, metric)).metrics[0].kind == "pass@k"


@pytest.mark.parametrize(
    "given",
    [
        "ko",
        {"combine": "add"},
        {"least": 2},
        {"least": "half"},
        {"share": 1},
        {"expected": "한국어!"},
    ],
)
def test_settings_that_cannot_be_used(given: Any) -> None:
    with pytest.raises(ConfigurationError):
        bind("choice", {"language_penalty": given})


def test_a_language_that_nobody_names() -> None:
    scorer = bind("exact-match", {"language_penalty": {}})
    with pytest.raises(ScoringError, match="names no language"):
        scorer.function(Sample("s", targets=("B",)), Answer("B"))


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300), st.sampled_from(["ko", "en", "ja", "zh", "th"]))
def test_any_text_has_a_share(text: str, code: str) -> None:
    found = spoken(text, code)
    assert 0 <= found.share <= 1
    assert found == spoken(text, code)


@pytest.mark.parametrize(
    "piece",
    [
        "\\[",
        "$$ ",
        "A van ",
        "<a",
        "“",
        "(",
        "가. ",
        "`",
        "A-",
        "aB",
        "a@",
        "www.",
        "\\boxed{",
        "다 A ",
    ],
)
def test_long_texts_are_fast(piece: str) -> None:
    assert_grows_linearly(lambda text: spoken(text, "ko"), repeated(piece))
