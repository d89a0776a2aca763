"""BLEU, chrF, chrF++ and TER against sacrebleu on real sentences, with intervals over items and
clusters.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalwright.core.errors import (
    ConfigurationError,
    MissingExtra,
    ScoringError,
    UnknownName,
)
from evalwright.core.samples import Answer, Sample, Score
from evalwright.metrics.registry import Column, Groups, compute, group_sums
from evalwright.scorers import corpus, registry
from evalwright.scorers.registry import bind
from support.typed import typed

sacrebleu = pytest.importorskip("sacrebleu", reason="sacrebleu is the oracle")

# Written for this test: answers that are right, shortened, reordered, wrong or empty, and
# references, one to three each.
PAIRS: list[tuple[str, tuple[str, ...]]] = [
    ("The ferry leaves at seven every morning.", ("The ferry departs at seven every morning.", "Each morning the ferry leaves at 7.")),
    ("She planted 1,200 trees (mostly oaks) in 2019.", ("In 2019 she planted 1,200 trees, mostly oaks.",)),
    ("It rained.", ("It rained for three days without a break.", "It rained.", "There was rain.")),
    ("", ("The answer was left empty.",)),
    ("a completely different sentence about nothing", ("Der Zug kommt um 8:15 Uhr an.",)),
    ("Der Zug kommt um 8:15 Uhr in Köln an.", ("Der Zug kommt um 8:15 Uhr in Köln an.",)),
    ("Le prix était de 3,50 € — « trop cher », dit-elle.", ("Le prix était 3,50 €, « trop cher » a-t-elle dit.",)),
    ("Wir fahren morgen nicht, weil es schneit und schneit und schneit.", ("Weil es schneit, fahren wir morgen nicht.",)),
    ("THE LIBRARY CLOSES AT NOON", ("The library closes at noon.",)),
    ("Tom said that that was what he said that he said.", ("Tom said that was what he said.", "Tom said so.")),
]  # fmt: skip
CHINESE = [
    ("我们明天去北京。", ("我们明天会去北京。",)),
    ("价格是3.5元", ("它的价格是3.5元。",)),
    ("猫在睡觉", ("狗在跑步",)),
]


def column(name: str, pairs: Any, clusters: Any = None, **options: Any) -> Column:
    scorer = bind(name, options)
    scores: list[Score] = []
    for place, (text, targets) in enumerate(pairs):
        score = scorer.function(Sample(f"item-{place}", targets=targets), Answer(text))
        assert isinstance(score, Score)
        scores.append(score)
    parts = {
        part: np.array([score.parts[part] for score in scores])
        for part in corpus.PARTS[name]
    }
    items = [score.item for score in scores]
    return Column(
        np.array([score.value for score in scores]),
        parts,
        clusters=clusters,
        items=items,
    )


def published(name: str, pairs: Any, **options: Any) -> float:
    texts = [text for text, _ in pairs]
    most = max(len(targets) for _, targets in pairs)
    streams: list[list[str | None]] = [
        [targets[place] if place < len(targets) else None for _, targets in pairs]
        for place in range(most)
    ]
    metric: Any = {
        "bleu": lambda: sacrebleu.BLEU(**options),
        "chrf": lambda: sacrebleu.CHRF(**options),
        "chrf++": lambda: sacrebleu.CHRF(word_order=2, **options),
        "ter": lambda: sacrebleu.TER(**options),
    }[name]()
    return float(metric.corpus_score(texts, streams).score)


@pytest.mark.parametrize("name", list(corpus.PARTS))
def test_numbers_are_those_of_sacrebleu(name: str) -> None:
    for pairs in (
        PAIRS,
        PAIRS[:3],
        PAIRS[5:8],
        PAIRS[3:5],
        CHINESE,
        [("", ("a b",))],
        [("one two", ("one two",))],
    ):
        assert compute(name, column(name, pairs)).value == pytest.approx(
            published(name, pairs), abs=1e-9
        )
    single = [(text, targets) for text, targets in PAIRS]
    own = bind(name).function
    for text, targets in single:
        whole = {
            "bleu": sacrebleu.sentence_bleu,
            "chrf": sacrebleu.sentence_chrf,
            "ter": sacrebleu.sentence_ter,
        }
        if name in whole:
            wanted = whole[name](text, list(targets)).score
            found = own(Sample("a", targets=targets), Answer(text))
            assert isinstance(found, Score)
            assert abs(found.value) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("name", ["bleu", "chrf", "chrf++"])
def test_lower_case_is_sacrebleus(name: str) -> None:
    found = compute(name, column(name, PAIRS, lowercase=True)).value
    assert found == pytest.approx(published(name, PAIRS, lowercase=True), abs=1e-9)


def test_the_tokeniser_is_that_of_the_language_and_is_said() -> None:
    found = compute("bleu", column("bleu", CHINESE, language="zh-CN"))
    assert found.value == pytest.approx(
        published("bleu", CHINESE, tokenize="zh"), abs=1e-9
    )
    assert found.method.endswith("; tokeniser zh")
    assert compute("bleu", column("bleu", PAIRS)).method.endswith("; tokeniser 13a")
    thai = Sample("a", targets=("แมวกินปลา",), metadata={"language": "th"})
    score = bind("bleu").function(thai, Answer("แมวกินปลา"))
    assert isinstance(score, Score)
    assert score.value == pytest.approx(100.0)
    assert score.item == {"tokenizer": "char"}
    assert corpus.tokenizer_of(Sample("a", metadata={"language": "jpn"})) == "ja-mecab"
    assert (
        corpus.tokenizer_of(Sample("a", metadata={"language": "ko"}), tokenize="intl")
        == "intl"
    )


def test_a_missing_tokeniser_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        corpus,
        "find_spec",
        lambda name: None if name in ("MeCab", "mecab_ko") else object(),
    )
    with pytest.raises(
        MissingExtra,
        match=r"'ja-mecab'.*pip install 'evalwright\[translation-ja\]'",
    ):
        bind("bleu", {"language": "ja"})
    with pytest.raises(MissingExtra, match=r"evalwright\[translation-ko\]"):
        corpus.check_bleu_sample(Sample("a", metadata={"language": "ko"}), {})
    with pytest.raises(UnknownName, match="Did you mean '13a'"):
        bind("bleu", {"tokenize": "13b"})
    with pytest.raises(ConfigurationError, match="language code"):
        bind("bleu", {"language": "Simplified Chinese"})
    monkeypatch.setattr(corpus, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"needs the library 'sacrebleu'"):
        bind("chrf")


@pytest.mark.parametrize("name", list(corpus.PARTS))
def test_the_interval_is_over_clusters_and_groups_give_the_same_sums(name: str) -> None:
    pairs = PAIRS * 6
    clusters = np.arange(len(pairs)) // 2
    whole = column(name, pairs)
    grouped = column(name, pairs, clusters=clusters)
    free = compute(name, whole)
    held = compute(name, grouped)
    assert free.value == held.value
    assert free.low < free.value < free.high
    assert (free.n, held.n_clusters, free.n_clusters) == (60, 30, None)
    made = group_sums(name, grouped, Groups(clusters, 30), {})
    assert made is not None
    sums, statistic = made
    assert float(statistic(sums.sum(axis=0))) == pytest.approx(held.value, abs=1e-9)
    rows = np.flatnonzero(clusters != 4)
    without = published(name, [pairs[row] for row in rows])
    assert float(statistic(sums.sum(axis=0) - sums[4])) == pytest.approx(
        without, abs=1e-9
    )


def test_the_interval_agrees_with_sacrebleus_bootstrap() -> None:
    pairs = [
        PAIRS[place] for place in np.random.default_rng(5).integers(0, len(PAIRS), 300)
    ]
    texts = [text for text, _ in pairs]
    streams = [[targets[0] for _, targets in pairs]]
    wanted = sacrebleu.CHRF().corpus_score(texts, streams, n_bootstrap=1000)
    found = compute(
        "chrf", column("chrf", [(text, targets[:1]) for text, targets in pairs])
    )
    assert (found.high - found.low) / 2 == pytest.approx(wanted._ci, rel=0.12)


def test_scores_without_counts_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="Use it with the scorer 'chrf'"):
        compute("chrf", Column(np.ones(2), {}))
    assert np.isnan(compute("ter", Column(np.array([]), {}, n_missing=2)).value)


def test_a_search_for_shifts_without_end_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "SECONDS", 1.0)
    target = " ".join(
        [
            "the cat sat on the mat and then it went to sleep for a long time while rain fell"
        ]
        * 10
    )
    words = target.split() * 8
    random.Random(1).shuffle(words)
    with pytest.raises(
        ScoringError,
        match=r"'ter' gave up .*[0-9,]+ characters",
    ):
        bind("ter").function(Sample("a", targets=(target,)), Answer(" ".join(words)))


TASK = """task: translate
dataset:
  rows:
{rows}
scorers: [bleu, chrf, ter]
metrics:
  - bleu
  - {{use: chrf, scorer: chrf}}
  - {{use: ter, scorer: ter}}
"""


def test_from_a_task_to_a_comparison_a_board_and_a_gate(tmp_path: Path) -> None:
    rows = "\n".join(
        "    - "
        + json.dumps(
            {"input": f"{place}: {text}", "target": list(targets)}, ensure_ascii=False
        )
        for place, (text, targets) in enumerate(PAIRS * 2)
    )
    (tmp_path / "translate.yaml").write_text(TASK.format(rows=rows))
    for name, kind in (("a", "oracle/gold"), ("b", "scripted/echo")):
        done = typed(
            "run", "translate.yaml", "--model", kind, "--name", name, folder=tmp_path
        )
        assert done.code == 0, done.text
    done = typed("compare", "a", "b", "--json", folder=tmp_path)
    assert done.code == 0, done.text
    assert "bleu" in done.text
    assert "jackknife" in done.text
    done = typed("leaderboard", "a", "b", "--with-simulations", folder=tmp_path)
    assert done.code == 0, done.text
    assert "bleu" in done.text.lower()
    record = json.loads((tmp_path / "runs" / "b" / "run.json").read_text())
    metrics = {metric["label"]: metric for metric in record["tasks"][0]["metrics"]}
    echoed = [
        (f"{place}: {text}", targets) for place, (text, targets) in enumerate(PAIRS * 2)
    ]
    for label, name in (("bleu", "bleu"), ("chrf-chrf", "chrf"), ("ter-ter", "ter")):
        assert metrics[label]["value"] == pytest.approx(
            published(name, echoed), abs=1e-9
        )
