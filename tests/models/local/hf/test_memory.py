"""Memory that the operating system refuses in the middle of a run, and the budget that a person
sets.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.models.local.hf.transformers_model import TransformersModel
from support.local_models import engine_of
from support.tiny_models import make_tiny_model

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

from evalwright.models.local.hf.batching import (  # noqa: E402
    generation_budget,
    scoring_budget,
    stored_budget,
)

CHILD = """
import json, resource, sys
from pathlib import Path
import torch
from evalwright.core.errors import Failure
from evalwright.core.requests import LogLikelihood
from evalwright.models.local.hf.transformers_model import TransformersModel

torch.set_num_threads(1)
shots = "The river rises in the hills above the town. " * 16
asked = [
    LogLikelihood(f"{shots}Question {question}: {' and'.join([' water'] * (question * 7))}", f" gold {choice}" * 3)
    for question in range(6)
    for choice in range(4)
]
asked.append(LogLikelihood("Heat moves from the warm body to the cold one. " * 230, " yes"))

def answers(model):
    out = [None] * len(asked)
    for index, response in model.answer_batch(asked):
        assert out[index] is None
        out[index] = response.message if isinstance(response, Failure) else response.log_likelihood
    return [out, model._engine.scorer._batcher.rows, model.describe()["scoring"]["path"]]

def opened(scoring, batch_size="auto"):
    return TransformersModel(
        sys.argv[1], device="cpu", scoring=scoring, batch_size=batch_size, attn_implementation="eager"
    )

# Who names a batch size takes the risk that so many rows do not fit, and with 40 MiB they do not.
models = {"free": opened("plain"), "plain": opened("plain", 64), "tree": opened("tree")}
for model in models.values():
    list(model.answer_batch(asked[:2]))
expected = answers(models["free"])
lines = Path("/proc/self/status").read_text().splitlines()
allowed = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmSize:")) + (int(sys.argv[2]) << 20)
resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
print(json.dumps([expected, answers(models["plain"]), answers(models["tree"])]))
"""


@pytest.fixture(scope="module")
def long_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Room for 4,096 tokens, whose attention to each other takes a quarter of a GiB in a layer
    if it is done at once.
    """
    folder = tmp_path_factory.mktemp("long")
    return make_tiny_model(folder, "llama", hidden=256, context=4096)


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(),
    reason="the limit is set as Linux counts memory",
)
def test_memory_that_the_system_refuses(long_model: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", CHILD, str(long_model), "40"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (expected, _, _), plain, tree = json.loads(done.stdout.splitlines()[-1])
    assert all(isinstance(value, float) for value in expected)
    for way, (found, _, path) in (("plain", plain), ("tree", tree)):
        assert path == way, "running out of memory is no reason to leave the tree"
        for wanted, value in zip(expected[:-1], found[:-1], strict=True):
            assert isinstance(value, float), value
            assert math.isclose(value, wanted, rel_tol=1e-5)
    assert 1 <= plain[1] < 25, "the batch is smaller now"
    assert (
        plain[0][-1]
        == "Out of memory for this request even when it is alone in its batch."
    )
    # The tree reads it in pieces, each of which fits.
    assert isinstance(tree[0][-1], float)
    assert math.isclose(tree[0][-1], expected[-1], rel_tol=1e-4)


def test_a_budget_that_a_person_sets(long_model: Path) -> None:
    as_written: Any = "0.0625"
    model = TransformersModel(str(long_model), device="cpu", memory=as_written)
    engine = engine_of(model)
    given = 2**26
    inside = engine.loaded.model
    # 16 hidden and 4 inner numbers of four bytes for a token, in a third of it.
    assert scoring_budget(inside, "cpu", given) == given // 3 // (
        (16 * 256 + 4 * 512) * 4
    )
    assert scoring_budget(inside, "cpu", given) == engine.scorer._batcher.tokens
    assert stored_budget("cpu", given) == given // 4 == engine.scorer._stored
    assert generation_budget(inside, "cpu", given) < generation_budget(inside, "cpu")
    wrong: Any
    for wrong in (0, -1, "much", True, float("nan"), float("inf")):
        with pytest.raises(ConfigurationError, match="positive number of GiB"):
            TransformersModel(str(long_model), memory=wrong)
    assert (
        model.fingerprint
        == TransformersModel(str(long_model), device="cpu").fingerprint
    )
