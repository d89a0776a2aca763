"""Memory that the operating system refuses in the middle of a run, and the budget that a person sets."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.models.hf.model import TransformersModel
from support.tiny_models import make_tiny_model

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

from evalwright.models.hf.batching import (  # noqa: E402
    generation_budget,
    is_out_of_memory,
    scoring_budget,
    stored_budget,
)

CHILD = """
import json, resource, sys
from pathlib import Path
import torch
from evalwright.core.errors import Failure
from evalwright.core.requests import LogLikelihood
from evalwright.models.hf.model import TransformersModel

folder, way, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
torch.set_num_threads(1)
model = TransformersModel(folder, device="cpu", scoring=way, attn_implementation="eager")
shots = "The river rises in the hills above the town. " * 8
asked = [
    LogLikelihood(f"{shots}Question {question}: {' and'.join([' water'] * (question * 7))}", f" gold {choice}" * 3)
    for question in range(12)
    for choice in range(4)
]
asked.append(LogLikelihood("Heat moves from the warm body to the cold one. " * 230, " yes"))
model.load()
list(model.answer_batch(asked[:2]))
if limit:
    lines = Path("/proc/self/status").read_text().splitlines()
    size = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmSize:"))
    allowed = size + int(limit * 2**20)
    resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
out = [None] * len(asked)
for index, response in model.answer_batch(asked):
    assert out[index] is None
    out[index] = response.message if isinstance(response, Failure) else response.log_likelihood
scorer = model._engine.scorer
print(json.dumps([out, scorer._batcher.tokens, model.describe()["scoring"]["path"]]))
"""


@pytest.fixture(scope="module")
def long_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Room for 4,096 tokens, whose attention to each other takes a quarter of a GiB in a layer if it is done at once."""
    folder = tmp_path_factory.mktemp("long")
    return make_tiny_model(folder, "llama", hidden=256, context=4096)


def score(folder: Path, way: str, limit: int) -> Any:
    """Answers, the size of a batch in the end and the way taken, with so many MiB at hand (0: any)."""
    command = [sys.executable, "-W", "ignore", "-c", CHILD, str(folder), way, str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the limit is set as Linux counts memory")
def test_memory_that_the_system_refuses(long_model: Path) -> None:
    expected, tokens, _ = score(long_model, "plain", 0)
    assert all(isinstance(value, float) for value in expected)
    for way in ("plain", "tree"):
        found, smaller, path = score(long_model, way, 60)
        assert path == way, "running out of memory is no reason to leave the tree"
        for wanted, value in zip(expected[:-1], found[:-1], strict=True):
            assert isinstance(value, float), value
            assert math.isclose(value, wanted, rel_tol=1e-5)
        if way == "plain":
            assert smaller < tokens
            assert found[-1] == "Out of memory for this request even when it is alone in its batch."
        else:  # it is read in pieces, each of which fits
            assert isinstance(found[-1], float)
            assert math.isclose(found[-1], expected[-1], rel_tol=1e-4)


def test_a_budget_that_a_person_sets(long_model: Path) -> None:
    model = TransformersModel(str(long_model), device="cpu", memory="0.015625")
    model.load()
    assert model._engine is not None
    inside, sixteen = model._engine.loaded.model, 2**24
    # 16 hidden and 4 inner numbers of four bytes for a token, in a third of it.
    assert scoring_budget(inside, "cpu", sixteen) == sixteen // 3 // ((16 * 256 + 4 * 512) * 4)
    assert scoring_budget(inside, "cpu", sixteen) == model._engine.scorer._budget.tokens  # type: ignore[attr-defined]
    assert stored_budget("cpu", sixteen) == sixteen // 4 == model._engine.scorer._budget.stored  # type: ignore[attr-defined]
    assert generation_budget(inside, "cpu", sixteen) < generation_budget(inside, "cpu")
    for wrong in (0, -1, "much", True, float("nan"), float("inf")):
        with pytest.raises(ConfigurationError, match="positive number of GiB"):
            TransformersModel(str(long_model), memory=wrong)
    assert model.fingerprint == TransformersModel(str(long_model), device="cpu").fingerprint


def test_memory_that_a_library_is_refused() -> None:
    assert is_out_of_memory(RuntimeError("std::bad_alloc"))
