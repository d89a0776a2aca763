"""Device maps: the same numbers wherever the parts lie, on one CPU and on disk, and sentences
for what does not fit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, MissingExtra
from evalwright.core.requests import Generate, LogLikelihood, Request
from evalwright.models.local.hf import options
from evalwright.models.local.hf.options import resolve_placement
from evalwright.models.local.hf.transformers_model import TransformersModel
from support.local_models import answers, engine_of

pytestmark = pytest.mark.torch

REQUESTS: list[Request] = [
    LogLikelihood("Iron melts at", " 1538 degrees"),
    LogLikelihood("Iron melts at", " 12 degrees"),
    Generate("Iron", max_tokens=6),
]
ON_DISK = {
    "model.embed_tokens": "cpu",
    "model.rotary_emb": "cpu",
    "model.layers.0": "cpu",
    "model.layers.1": "disk",
    "model.norm": "cpu",
    "lm_head": "cpu",
}


@pytest.mark.parametrize("device_map", ["cpu", {"": "cpu"}, "auto", ON_DISK], ids=str)
def test_the_same_numbers_wherever_the_parts_lie(
    folders: dict[str, Path], tmp_path: Path, device_map: Any
) -> None:
    import torch

    pytest.importorskip("accelerate")
    if device_map == "auto" and torch.cuda.is_available():
        pytest.skip("auto takes the GPU here, which rounds differently")
    plain = TransformersModel(str(folders["llama"]), device="cpu")
    spread = TransformersModel(
        str(folders["llama"]),
        device_map=device_map,
        offload_folder=str(tmp_path / "offload"),
    )
    assert spread.fingerprint == plain.fingerprint, (
        "where the parts lie changes no answer"
    )
    for ours, theirs in zip(
        answers(spread, REQUESTS), answers(plain, REQUESTS), strict=True
    ):
        assert ours.text == theirs.text
        if theirs.log_likelihood is not None:
            assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, abs=1e-5)
    assert engine_of(spread).loaded.device == "cpu"
    wanted = "plain" if device_map == ON_DISK else "tree"
    assert spread.describe()["scoring"]["path"] == wanted
    expected = {"": "cpu"} if device_map == "cpu" else device_map
    assert spread.describe()["device_map"] == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("outo", None, None, "auto"), "did you mean 'auto'"),
        (({"a": "gpu"}, None, None, "auto"), "is not a device"),
        (({"a": True}, None, None, "auto"), "is not a device"),
        (("auto", "20GiB", None, "auto"), "must be a mapping"),
        (("auto", {"0": "much"}, None, "auto"), "not an amount of memory"),
        (("auto", {"gpu": "1GiB"}, None, "auto"), "is not a device"),
        (("auto", None, 5, "auto"), "must be a folder"),
        (("auto", None, None, "cpu"), "cannot both be given"),
        ((None, {"0": "1GiB"}, None, "auto"), "can only be used with device_map"),
        ((None, None, "here", "auto"), "can only be used with device_map"),
    ],
)
def test_what_does_not_fit(arguments: tuple[Any, Any, Any, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        resolve_placement(*arguments)


def test_without_accelerate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"'accelerate'.*evalwright\[hf\]"):
        resolve_placement("auto", None, None, "auto")
