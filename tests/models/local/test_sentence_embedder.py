"""Embedders in the form of sentence-transformers: a tiny BERT against its own states pooled one
text at a time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.core.requests import Embed, Generate
from evalwright.core.responses import Response
from evalwright.models.local.sentence_embedder import SentenceEmbedder
from evalwright.models.registry import open_model
from evalwright.scorers.similarity import cosines
from support.local_models import answers

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from support.tiny_models import make_two_sided_tokenizer  # noqa: E402

TEXTS = [
    "the cat",
    "the cat sat on the mat and looked at the moon",
    "a dog",
    "Der Hund läuft",
    "猫",
    "sat",
]
KINDS = {
    name: f"sentence_transformers.models.{name}"
    for name in ("Transformer", "Pooling", "Normalize", "Dense")
}


def make(
    folder: Path,
    pooling: str = "mean_tokens",
    modules: Sequence[str] = ("Transformer", "Pooling", "Normalize"),
    **options: Any,
) -> Path:
    """A folder as the library sentence-transformers writes it."""
    from transformers import BertConfig, BertModel

    tokenizer = make_two_sided_tokenizer("bart")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        sizes = {
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 32,
        }
        network = BertModel(
            BertConfig(vocab_size=len(tokenizer), **sizes), add_pooling_layer=False
        ).eval()
        for tensor in network.parameters():
            tensor.data += 0.3 * torch.randn_like(tensor)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "1_Pooling").mkdir()
    modes = {
        f"pooling_mode_{name}": name == pooling
        for name in ("cls_token", "mean_tokens", "max_tokens", "lasttoken")
    }
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 16, **modes})
    )
    places = {"Transformer": "", "Pooling": "1_Pooling"}
    listed = [
        {
            "idx": idx,
            "name": str(idx),
            "path": places.get(kind, f"{idx}_{kind}"),
            "type": KINDS[kind],
        }
        for idx, kind in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": 64, **options})
    )
    return folder


def vectors(model: SentenceEmbedder, texts: Sequence[str]) -> list[tuple[float, ...]]:
    return [
        response.values for response in answers(model, [Embed(text) for text in texts])
    ]


def embedder(folder: Path, **arguments: Any) -> SentenceEmbedder:
    model = open_model(f"st/{folder}", {"device": "cpu", **arguments})
    assert isinstance(model, SentenceEmbedder)
    return model


@pytest.mark.parametrize("pooling", ["cls_token", "mean_tokens", "max_tokens"])
def test_vectors_are_the_states_pooled_one_text_at_a_time(
    tmp_path: Path, pooling: str
) -> None:
    from transformers import AutoModel, AutoTokenizer

    folder = make(tmp_path / "m", pooling)
    network = AutoModel.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    wanted = []
    for text in TEXTS:
        with torch.no_grad():
            states = (
                network(**tokenizer(text, return_tensors="pt"))
                .last_hidden_state[0]
                .double()
                .numpy()
            )
        pooled = {
            "cls_token": states[0],
            "mean_tokens": states.mean(0),
            "max_tokens": states.max(0),
        }[pooling]
        wanted.append(pooled / np.linalg.norm(pooled))
    for batch_size in (1, 4, 32):
        found = vectors(embedder(folder, batch_size=batch_size), TEXTS)
        np.testing.assert_allclose(found, wanted, atol=2e-6)


def test_without_normalising_vectors_keep_their_length(tmp_path: Path) -> None:
    plain = embedder(make(tmp_path / "a", modules=("Transformer", "Pooling")))
    unit = embedder(make(tmp_path / "b"))
    assert plain.fingerprint != unit.fingerprint
    one, other = vectors(plain, TEXTS[:2])
    assert not np.isclose(np.linalg.norm(one), 1.0, atol=0.05)
    assert cosines([one, other]) == pytest.approx(
        cosines(vectors(unit, TEXTS[:2])), abs=1e-5
    )


def test_a_text_that_is_too_long_fails_alone(tmp_path: Path) -> None:
    model = embedder(make(tmp_path / "m", max_seq_length=8))
    found = dict(
        model.answer_batch(
            [Embed("the cat"), Embed("the cat " * 20), Generate("hello")]
        )
    )
    assert isinstance(found[0], Response)
    assert "reads 8" in str(found[1])
    assert "cannot do" in str(found[2])


@pytest.mark.parametrize(
    ("pooling", "modules", "message"),
    [
        ("lasttoken", ("Transformer", "Pooling"), "lasttoken"),
        ("mean_tokens", ("Transformer", "Pooling", "Dense"), "Dense"),
        ("mean_tokens", ("Transformer",), "begin with"),
    ],
)
def test_what_cannot_be_followed_is_refused(
    tmp_path: Path, pooling: str, modules: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        embedder(make(tmp_path / "m", pooling, modules))


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"modules\.json"):
        embedder(tmp_path / "nothing")
    folder = make(tmp_path / "m")
    (folder / "modules.json").write_text("{")
    with pytest.raises(ConfigurationError, match="JSON"):
        embedder(folder)
    entry = {"path": "../elsewhere", "type": KINDS["Transformer"]}
    (folder / "modules.json").write_text(json.dumps([entry]))
    with pytest.raises(ConfigurationError, match="is outside"):
        embedder(folder)
