"""Scores by the prefix tree against the plain way, over architectures, shapes of trees, and
troubles on the way.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright.core.errors import Failure, ModelError
from evalwright.core.requests import (
    Generate,
    LogLikelihood,
    Request,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response
from evalwright.models.local.hf.transformers_model import TransformersModel
from evalwright.models.local.tokens import Pair
from support.local_models import agree, answers, engine_of
from support.tiny_models import Unusual, make_tiny_model, make_unusual_model

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from evalwright.models.local.answering import PairScore  # noqa: E402
from evalwright.models.local.hf.batching import BatchRunner  # noqa: E402
from evalwright.models.local.hf.reading import LogitReader, PlainScorer  # noqa: E402
from evalwright.models.local.hf.tree_forward import TreeForward, longest_path  # noqa: E402
from evalwright.models.local.hf.tree_scoring import TreeScorer  # noqa: E402
from evalwright.models.local.tree import Row  # noqa: E402

ARCHITECTURES = ["llama", "gpt2", "qwen2", "gemma2", "cohere"]
WORDS = "river hills town mill sea spring water baker street oven flour salt sun moon train gold lead iron".split()  # noqa: SIM905


@pytest.fixture(scope="session")
def wide(
    tmp_path_factory: pytest.TempPathFactory, folders: dict[str, Path]
) -> dict[str, Path]:
    """Models with room for a few hundred tokens."""
    root = tmp_path_factory.mktemp("wide")
    made = {
        kind: make_tiny_model(root / kind, kind, context=512)
        for kind in ("llama", "gpt2", "qwen2")
    }
    for unusual in ("gemma2", "cohere"):
        made[unusual] = make_unusual_model(
            root / unusual, unusual, context=512, window=400
        )
    return made


def model_of(folder: Path, **arguments: Any) -> TransformersModel:
    return TransformersModel(
        str(folder), **{"device": "cpu", "max_length": 512, **arguments}
    )


def words(rng: random.Random, least: int, most: int) -> str:
    return "".join(f" {rng.choice(WORDS)}" for _ in range(rng.randint(least, most)))


def benchmark_requests(questions: int, seed: int = 0) -> list[Request]:
    """Shots that all questions share; letters, full texts, repeats, and other kinds of requests
    among them.
    """
    rng = random.Random(seed)
    shots = words(rng, 60, 60)
    out: list[Request] = []
    for place in range(questions):
        context = f"{shots} Question:{words(rng, 2, 20)}? Answer:"
        out += [LogLikelihood(context, f" {letter}") for letter in "ABCD"]
        out += [LogLikelihood(context, words(rng, 1, 5)) for _ in range(4)]
        if place % 4 == 0:
            out += [
                out[-1],
                RollingLogLikelihood(context),
                LogLikelihood("", words(rng, 1, 9)),
            ]
            out += [
                Generate("The river", max_tokens=2),
                LogLikelihood(shots, " Question: river"),
            ]
    out += [
        LogLikelihood("", "river"),
        LogLikelihood("a", ""),
        LogLikelihood(shots * 20, " sea"),
    ]
    return out


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_benchmark_scores_as_the_plain_way_does(
    kind: str, wide: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    requests = benchmark_requests(questions=8)
    expected = answers(model_of(wide[kind], scoring="plain"), requests)
    for cascading in (True, False):
        caplog.clear()
        model = model_of(wide[kind], scoring="tree")
        forward = _forward(model)
        forward.cascading = cascading and forward.cascading
        agree(answers(model, requests), expected)
        told = model.describe()["scoring"]
        assert told["path"] == "tree"
        # Gemma 2 bends its attention scores, so it attends by its own code.
        assert told["attention"] == (
            "cascade" if cascading and kind != "gemma2" else "portable"
        )
        assert told["tokens_computed"] < 0.3 * told["tokens_given"]
        # Its window of 400 tokens is shorter than one of the inputs.
        said = [record.getMessage() for record in caplog.records]
        assert [re.search(r"\b1 of \d+ inputs", each) is not None for each in said] == [
            True
        ] * (kind == "gemma2")


def _forward(model: TransformersModel) -> TreeForward:
    scorer = engine_of(model).scorer
    assert isinstance(scorer, TreeScorer)
    return scorer.forward


class Scorers:
    """Both ways over one model, without text; the tree with any budget."""

    def __init__(self, folder: Path) -> None:
        self.model = engine_of(
            TransformersModel(str(folder), device="cpu")
        ).loaded.model
        self.reader = LogitReader(self.model, "cpu")
        self.plain = PlainScorer(self.reader, BatchRunner(None, 4096), "cpu")

    def tree(
        self,
        *,
        tokens: int = 2048,
        rows: int | None = None,
        stored: int = 1 << 30,
        **how: Any,
    ) -> TreeScorer:
        cascading = how.pop("cascading", True)
        forward = TreeForward(self.model, self.reader, "cpu")
        forward.cascading = forward.cascading and cascading
        given = {"tokens": tokens, "rows": rows, "stored": stored, "name": "m", **how}
        return TreeScorer(forward, self.reader, self.plain, **given)


@pytest.fixture(scope="session")
def scorers(wide: dict[str, Path]) -> dict[str, Scorers]:
    return {kind: Scorers(folder) for kind, folder in wide.items()}


def same(
    found: dict[int, PairScore | Failure], expected: dict[int, PairScore | Failure]
) -> None:
    assert found.keys() == expected.keys()
    for index, theirs in expected.items():
        ours = found[index]
        assert isinstance(ours, PairScore)
        assert isinstance(theirs, PairScore)
        assert ours.log_likelihood == pytest.approx(
            theirs.log_likelihood, abs=1e-5 * theirs.tokens
        )
        assert (ours.is_greedy, ours.tokens) == (theirs.is_greedy, theirs.tokens)


stems = st.lists(st.integers(5, 300), min_size=1, max_size=70)
"""Beginnings that several inputs share, long enough to be stored."""


@st.composite
def trees(draw: st.DrawFn) -> list[Pair]:
    """Pairs with shared beginnings, repeats, inputs that begin others, and one-token contexts."""
    paths: list[list[int]] = [[1]]
    for _ in range(draw(st.integers(1, 12))):
        base = draw(st.sampled_from(paths))
        at = draw(st.integers(1, len(base)))
        more = draw(st.one_of(stems, st.lists(st.integers(5, 300), max_size=4)))
        paths.append([*base[:at], *more][:300])
    pairs: list[Pair] = []
    for path in paths:
        split = draw(st.integers(1, len(path)))
        continuation = path[split:] or [draw(st.integers(5, 300))]
        pairs.append((path[:split], continuation))
    return pairs + draw(st.lists(st.sampled_from(pairs), max_size=3))


@settings(max_examples=25)
@given(
    trees(),
    st.sampled_from(ARCHITECTURES),
    st.booleans(),
    st.sampled_from([64, 150, 2048]),
)
def test_any_tree_scores_as_the_plain_way_does(
    scorers: dict[str, Scorers],
    pairs: list[Pair],
    kind: str,
    cascading: bool,
    tokens: int,
) -> None:
    both = scorers[kind]
    tree = both.tree(tokens=tokens, cascading=cascading, insist=True)
    same(dict(tree.score(pairs)), dict(both.plain.score(pairs)))


def shared_pairs(seed: int = 0, prefixes: int = 2, questions: int = 40) -> list[Pair]:
    rng = random.Random(seed)
    out: list[Pair] = []
    for _ in range(prefixes):
        shots = [1, *(rng.randrange(5, 300) for _ in range(120))]
        for _ in range(questions):
            question = [rng.randrange(5, 300) for _ in range(rng.randint(5, 40))]
            out += [
                (shots + question, [rng.randrange(5, 300) for _ in range(3)])
                for _ in range(3)
            ]
    return out


class Cramped:
    """Wraps the model's base: passes of more than `tokens` tokens do not fit into memory."""

    def __init__(self, forward: Any, tokens: int) -> None:
        self.forward = forward
        self.tokens = tokens
        self.refused = self.done = 0

    def __call__(self, *args: Any, **given: Any) -> Any:
        size = given["input_ids"].numel()
        if size > self.tokens:
            self.refused += 1
            raise torch.OutOfMemoryError("CUDA out of memory")
        self.done += size
        return self.forward(*args, **given)


@pytest.mark.parametrize("cascading", [True, False])
def test_memory_that_runs_out_costs_no_finished_work(
    scorers: dict[str, Scorers], cascading: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = scorers["llama"]
    pairs = shared_pairs(questions=6)
    expected = dict(both.plain.score(pairs))
    tree = both.tree(cascading=cascading)
    assert dict(tree.score(pairs)).keys() == expected.keys()
    base = both.model.base_model
    cramped = Cramped(base.forward, 100)
    monkeypatch.setattr(base, "forward", cramped)
    same(dict(tree.score(pairs)), expected)
    assert cramped.refused
    assert tree._batcher.tokens <= 100, "the smaller size is kept"
    assert cramped.done < 1.3 * tree._tokens_computed / 2, (
        "passes that were done are not done again"
    )
    refused = cramped.refused
    same(dict(tree.score(pairs)), expected)
    assert cramped.refused == refused
    # Where nothing fits, every request fails by itself.
    cramped.tokens = 0
    assert all(
        isinstance(outcome, Failure) for outcome in dict(tree.score(pairs[:4])).values()
    )


def test_prefixes_that_may_not_be_kept_go_the_plain_way(
    scorers: dict[str, Scorers],
) -> None:
    both = scorers["llama"]
    pairs = shared_pairs()
    tree = both.tree(stored=1000)
    dict(tree.score(pairs))  # with the comparison that comes first
    left: list[int] = []

    class Counted:
        def score(
            self, pairs: Sequence[Pair]
        ) -> Iterator[tuple[int, PairScore | Failure]]:
            left.append(len(pairs))
            return both.plain.score(pairs)

    tree._plain = Counted()  # type: ignore[assignment]
    same(dict(tree.score(pairs)), dict(both.plain.score(pairs)))
    assert left == [len(pairs)]


@pytest.mark.parametrize("cascading", [True, False])
def test_a_pass_stays_within_its_budget(
    scorers: dict[str, Scorers], cascading: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = scorers["llama"]
    sizes: list[tuple[int, int]] = []
    inner = both.model.base_model.forward

    def noted(*args: Any, **given: Any) -> Any:
        sizes.append(tuple(given["input_ids"].shape))
        return inner(*args, **given)

    pairs = shared_pairs(prefixes=1)
    tree = both.tree(tokens=200, rows=3, cascading=cascading)
    dict(tree.score(pairs))
    monkeypatch.setattr(both.model.base_model, "forward", noted)
    run = tree.forward.run
    passes = []

    def counted(rows: Sequence[Row], *args: Any, **given: Any) -> Any:
        passes.append([row.length for row in rows])
        return run(rows, *args, **given)

    monkeypatch.setattr(tree.forward, "run", counted)
    before = tree._tokens_computed
    dict(tree.score(pairs))
    assert all(rows * length <= 200 for rows, length in sizes)
    assert max(map(len, passes)) == 3
    if cascading:
        assert sizes == [(1, sum(lengths)) for lengths in passes], (
            "rows lie end to end, without padding"
        )
        assert sum(map(sum, passes)) == tree._tokens_computed - before
    else:
        assert sizes == [(len(lengths), max(lengths)) for lengths in passes]


def test_results_come_while_the_work_goes_on(scorers: dict[str, Scorers]) -> None:
    both = scorers["llama"]
    pairs = shared_pairs(prefixes=6, questions=12)
    tree = both.tree(tokens=256)
    dict(tree.score(pairs))  # with the comparison that comes first
    passes = 0
    inner = tree.forward.run

    def counted(*args: Any, **given: Any) -> Any:
        nonlocal passes
        passes += 1
        return inner(*args, **given)

    tree.forward.run = counted  # type: ignore[method-assign]
    outcomes = tree.score(pairs)
    next(outcomes)
    early = passes
    assert len(list(outcomes)) == len(pairs) - 1
    assert early < passes / 3


# --- models that cannot take part
# -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("mamba", "it carries a state from token to token that cannot branch"),
        ("bloom", "it does not use position_ids"),
    ],
)
def test_a_model_that_cannot_take_part_says_so_and_goes_the_plain_way(
    kind: Unusual,
    reason: str,
    tmp_path: Path,
    folders: dict[str, Path],
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = make_unusual_model(tmp_path, kind, context=512)
    requests = benchmark_requests(questions=3)
    with caplog.at_level(logging.WARNING, "evalwright"):
        model = model_of(folder)
        found = answers(model, requests)
    agree(found, answers(model_of(folder, scoring="plain"), requests))
    told = model.describe()["scoring"]
    assert told["path"] == "plain"
    assert reason in told["because"]
    lines = [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("evalwright")
    ]
    [line] = [line for line in lines if "log-likelihoods" in line]
    assert (
        f"log-likelihoods are computed one at a time, because {told['because']}" in line
    )
    with pytest.raises(ModelError, match="cannot be scored by a prefix tree"):
        model_of(folder, scoring="tree").load()


@pytest.mark.parametrize(
    ("kind", "scoring"), [("gemma2", "tree"), ("gemma2", "auto"), ("gpt_neo", "auto")]
)
def test_longer_texts_than_a_window_go_the_plain_way(
    kind: Unusual, scoring: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make_unusual_model(tmp_path, kind, context=512, window=16)
    requests = benchmark_requests(questions=3)
    requests += [LogLikelihood("river hills", f" {letter}") for letter in "ABCD"]
    model = model_of(folder, scoring=scoring)
    agree(
        answers(model, requests), answers(model_of(folder, scoring="plain"), requests)
    )
    assert _forward(model).longest == 16
    told = model.describe()["scoring"]
    if kind == "gemma2":
        assert told["path"] == "tree"
        assert 0 < told["tokens_given"] < 200, "the short ones only"
    assert ("are scored one at a time" in caplog.text) == (scoring == "tree")


def test_wrong_numbers_are_found_before_any_is_given_out(
    scorers: dict[str, Scorers], caplog: pytest.LogCaptureFixture
) -> None:
    both = scorers["llama"]
    pairs = shared_pairs()
    tree = both.tree()
    inner = tree.forward.base
    positions = []

    class Misplaced:
        """A model that goes by the place in the row instead of by the position that it is given."""

        def __call__(self, **given: Any) -> Any:
            if "position_ids" in given:
                positions.append(given["position_ids"])
                given["position_ids"] = torch.arange(given["position_ids"].shape[1])[
                    None
                ]
            return inner(**given)

    tree.forward.base = Misplaced()
    with caplog.at_level(logging.WARNING, "evalwright"):
        same(dict(tree.score(pairs)), dict(both.plain.score(pairs)))
    assert positions
    assert "differ by" in caplog.text
    assert tree.describe()["path"] == "plain"
    assert "differ by" in tree.describe()["because"]
    again = both.tree(insist=True)
    again.forward.base = Misplaced()
    with pytest.raises(ModelError, match="scores differ"):
        dict(again.score(pairs))


def test_wrong_numbers_of_long_texts_are_found_too(
    scorers: dict[str, Scorers], caplog: pytest.LogCaptureFixture
) -> None:
    both = scorers["llama"]
    pairs = shared_pairs()
    tree = both.tree()
    inner = tree.forward.base

    class Forgetful:
        """A model that loses count of positions after the hundredth: short cuts do not show it."""

        def __call__(self, **given: Any) -> Any:
            if "position_ids" in given:
                given["position_ids"] = given["position_ids"].clamp(max=100)
            return inner(**given)

    tree.forward.base = Forgetful()
    with caplog.at_level(logging.WARNING, "evalwright"):
        same(dict(tree.score(pairs)), dict(both.plain.score(pairs)))
    assert "differ by" in tree.describe()["because"]


def test_a_model_that_refuses_masks_goes_the_plain_way(
    scorers: dict[str, Scorers],
) -> None:
    both = scorers["qwen2"]
    pairs = shared_pairs()
    tree = both.tree()
    inner = tree.forward.base
    tried: list[bool] = []

    class Stubborn:
        def __call__(self, **given: Any) -> Any:
            tried.append(tree.forward.cascading)
            if given[tree.forward.cache_argument] is not None and len(tried) > 2:
                raise ValueError("attention mask must be of two dimensions")
            return inner(**given)

    tree.forward.base = Stubborn()
    same(dict(tree.score(pairs)), dict(both.plain.score(pairs)))
    assert tree.describe()["path"] == "plain"
    assert (
        "ValueError: attention mask must be of two dimensions"
        in tree.describe()["because"]
    )
    assert True in tried
    assert tried[-1] is False, "the portable way was tried after the cascade"


@pytest.mark.parametrize(
    ("how", "attention", "near"),
    [
        ({"attn_implementation": "eager"}, "portable", {"abs": 1e-3}),
        ({"dtype": "bfloat16"}, "cascade", {"rel": 0.02, "abs": 0.2}),
    ],
)
def test_eager_attention_and_half_precision_take_part(
    wide: dict[str, Path], how: dict[str, Any], attention: str, near: dict[str, Any]
) -> None:
    requests = benchmark_requests(questions=4)
    model = model_of(wide["llama"], **how)
    plain = model_of(wide["llama"], scoring="plain", **how)
    for ours, theirs in zip(
        answers(model, requests), answers(plain, requests), strict=True
    ):
        if isinstance(theirs, Response) and theirs.tokens_scored:
            assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, **near)
    told = model.describe()["scoring"]
    assert (told["path"], told["attention"]) == ("tree", attention)


# --- how long a path may be
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_config", "longest"),
    [
        ({}, None),
        ({"sliding_window": None}, None),
        ({"sliding_window": 512}, 512),
        ({"sliding_window": 512, "layer_types": ["full_attention"]}, None),
        (
            {
                "sliding_window": 512,
                "layer_types": ["full_attention", "sliding_attention"],
            },
            512,
        ),
        ({"sliding_window": 512, "use_sliding_window": False}, None),
        ({"attention_chunk_size": 256, "sliding_window": 512}, 256),
        (
            {
                "rope_parameters": {
                    "rope_type": "llama3",
                    "original_max_position_embeddings": 100,
                }
            },
            None,
        ),
        (
            {
                "rope_parameters": {
                    "rope_type": "longrope",
                    "original_max_position_embeddings": 100,
                }
            },
            100,
        ),
        ({"rope_parameters": {"rope_type": "dynamic"}}, 4096),
        ({"rope_parameters": {"full_attention": {"rope_type": "dynamic"}}}, 4096),
    ],
)
def test_the_longest_path(given_config: dict[str, Any], longest: int | None) -> None:
    assert (
        longest_path(SimpleNamespace(max_position_embeddings=4096, **given_config))
        == longest
    )
