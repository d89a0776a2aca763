"""Log-likelihoods out of blocks of the vocabulary are those of the whole softmax."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from evalwright.models.local.hf import reading  # noqa: E402
from evalwright.models.local.hf.reading import LogitReader, read_log_likelihoods  # noqa: E402
from support.tiny_models import make_tiny_model, make_unusual_model  # noqa: E402

POSITIONS = 300
VOCABULARY = 1000


def blocks_of(logits: Any, columns: int) -> reading.LogitsOf:
    return lambda start, end: (
        (first, logits[start:end, first : first + columns].clone())
        for first in range(0, VOCABULARY, columns)
    )


@pytest.fixture(params=["CPU", "GPU"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to read: that of a CPU, and that of a GPU, which waits for no number."""
    if request.param == "GPU":
        monkeypatch.setattr(reading, "_Reads", reading._QueuedReads)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("columns", [1, 7, 128, 999, 1000])
def test_any_blocks_give_the_whole_softmax(columns: int) -> None:
    torch.manual_seed(0)
    logits = torch.randn(POSITIONS, VOCABULARY) * 4
    best = logits.argmax(dim=-1).tolist()
    reads = [
        (place, best[place] if place % 3 else place)
        for place in reversed(range(POSITIONS))
    ]
    reads += [(5, 1), (5, 999), (5, 1)]  # several reads of one position
    values, greedy = read_log_likelihoods(blocks_of(logits, columns), POSITIONS, reads)
    wanted = torch.log_softmax(logits.double(), dim=-1)
    for (place, token), value, is_best in zip(reads, values, greedy, strict=True):
        assert value == pytest.approx(float(wanted[place, token]), abs=2e-6)
        assert is_best == (best[place] == token)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("columns", [3, 10, 1000])
def test_of_several_highest_logits_the_first_is_the_most_probable(columns: int) -> None:
    logits = torch.zeros(1, VOCABULARY)
    logits[0, [4, 5, 700]] = 3.0
    reads = [(0, 4), (0, 5), (0, 700), (0, 0)]
    values, greedy = read_log_likelihoods(blocks_of(logits, columns), 1, reads)
    assert greedy == [True, False, False, False]
    assert values[0] == values[1] == values[2] > values[3]


def test_a_gpu_is_never_waited_for_while_it_reads() -> None:
    """Tensors without numbers: whatever had to know one would raise."""
    device = torch.device("meta")
    chunk = reading._QueuedReads([0, 2, 2], [5, 1, 9], rows=3, device=device)
    for first in (0, 6):
        chunk.add(first, torch.empty(3, 6, device=device))
    values, greedy = chunk.result()
    assert (values.shape, greedy.shape) == ((3,), (3,))
    with pytest.raises((NotImplementedError, RuntimeError)):
        reading._Reads([0], [5], rows=3, device=device).add(
            0, torch.empty(3, 6, device=device)
        )


@pytest.mark.parametrize("kind", ["llama", "gemma2", "cohere"])
def test_a_models_head_by_blocks(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoModelForCausalLM

    if kind == "llama":
        make_tiny_model(tmp_path, "llama")
    else:
        make_unusual_model(tmp_path, kind)  # type: ignore[arg-type]
    model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    reader = LogitReader(model, "cpu")
    assert reader.sliced
    hidden = torch.randn(20, model.config.hidden_size)
    monkeypatch.setattr(reading, "CACHED_ELEMENTS", 20 * 11)
    with torch.inference_mode():
        blocks = list(reader.blocks(hidden))
        assert len(blocks) > 3
        assert [first for first, _ in blocks] == list(range(0, reader.vocabulary, 11))
        assert torch.allclose(
            torch.cat([part for _, part in blocks], dim=1),
            reader.head(hidden),
            atol=1e-6,
        )
