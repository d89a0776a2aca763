"""Scores with packed weights: from many tokens on, compared before use, and equal to plain ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evalwright.models.local.answering import PairScore
from evalwright.models.local.tokens import Pair
from support.tiny_models import make_tiny_model

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from evalwright.models.local.hf import tree_scoring  # noqa: E402
from evalwright.models.local.hf.batching import BatchRunner  # noqa: E402
from evalwright.models.local.hf.packed_products import (  # noqa: E402
    PackedProducts,
    are_supported,
)
from evalwright.models.local.hf.reading import LogitReader, PlainScorer  # noqa: E402
from evalwright.models.local.hf.tree_forward import TreeForward  # noqa: E402
from evalwright.models.local.hf.tree_scoring import TreeScorer  # noqa: E402

needs_packing = pytest.mark.skipif(
    not are_supported(), reason="this processor or torch has no packed products"
)


class CountedProducts(PackedProducts):
    """Counts the passes with packed weights, and can make them wrong."""

    passes = 0
    error = 0.0

    @contextmanager
    def applied(self, head: bool = True) -> Iterator[None]:
        assert not head  # scoring reads the head in blocks of the plain weights
        self.passes += self.active
        with super().applied(head):
            for module in self._body if self.error and self.active else ():
                forward = module.__dict__["forward"]
                module.__dict__["forward"] = lambda states, forward=forward: (
                    forward(states) * (1 + self.error)
                )
            yield


@pytest.fixture
def model(tmp_path: Path) -> Any:
    from transformers import AutoModelForCausalLM

    folder = make_tiny_model(tmp_path / "llama", "llama", context=512)
    return AutoModelForCausalLM.from_pretrained(folder).eval()


def endings(model: Any, questions: int) -> list[Pair]:
    rng = random.Random(0)

    def tokens(count: int) -> list[int]:
        return rng.choices(range(3, model.config.vocab_size), k=count)

    pairs: list[Pair] = []
    for _ in range(questions):
        context = tokens(60)
        pairs += [(context, tokens(length)) for length in (3, 5, 6, 9)]
    return pairs


def scorers(model: Any) -> tuple[TreeScorer, PlainScorer, CountedProducts]:
    reader = LogitReader(model, "cpu")
    plain = PlainScorer(reader, BatchRunner(None, 4096), "cpu")
    products = CountedProducts(model, "cpu", 1 << 30)
    forward = TreeForward(model, reader, "cpu")
    scorer = TreeScorer(
        forward,
        reader,
        plain,
        tokens=1024,
        rows=None,
        stored=1 << 30,
        name="tiny",
        products=products,
    )
    return scorer, plain, products


def assert_agree(scorer: TreeScorer, plain: PlainScorer, pairs: list[Pair]) -> None:
    expected = dict(plain.score(pairs))
    scores = dict(scorer.score(pairs))
    assert scores.keys() == expected.keys()
    for index, score in scores.items():
        reference = expected[index]
        assert isinstance(score, PairScore)
        assert isinstance(reference, PairScore)
        difference = abs(score.log_likelihood - reference.log_likelihood)
        assert difference <= 2e-6 * score.tokens
        assert score.is_greedy == reference.is_greedy


@needs_packing
def test_packed_weights_are_used_from_many_tokens_on(model: Any) -> None:
    scorer, plain, products = scorers(model)
    few = endings(model, 4)
    assert_agree(scorer, plain, few)
    assert products.passes == 0
    assert_agree(scorer, plain, endings(model, 60))
    passes = products.passes
    assert passes > 0
    # Once packed, they are used for few tokens too.
    assert_agree(scorer, plain, few)
    assert products.passes > passes
    assert scorer.describe()["attention"] == "cascade"


@needs_packing
def test_wrong_packed_products_are_given_up_alone(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_scoring, "_MIN_PACKED_TOKENS", 1)
    scorer, plain, products = scorers(model)
    products.error = 0.01
    assert_agree(scorer, plain, endings(model, 4))
    assert products.passes > 0
    assert not products.active
    assert scorer.describe()["attention"] == "cascade"


def test_a_pass_on_a_cpu_has_tokens_by_its_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = []
    for threads in (1, 6, 64):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        limits.append(tree_scoring.tokens_of_pass("cpu"))
    assert limits == [1024, 1536, 2048]
    assert tree_scoring.tokens_of_pass("cuda:0") > 1 << 40
