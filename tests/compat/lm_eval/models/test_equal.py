"""Helpers and base classes of model classes give what those of lm_eval 0.4.13 give, on the same
random inputs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.tiny_models import CORPUS, make_tiny_model, make_two_sided_model

ROOT = Path(__file__).resolve().parents[4]
PACKAGE = ROOT / ".venv" / "lm_eval"
OURS = "evalwright.compat.lm_eval"
BOTH = Path(__file__).with_name("both.py")

pytestmark = pytest.mark.skipif(
    not (PACKAGE / "lm_eval").is_dir(), reason=f"lm_eval is not at {PACKAGE}"
)


def results(root: str, folder: Path, what: str) -> Any:
    """What a root gives, in a process that sees lm_eval only where it is wanted."""
    paths = [
        str(ROOT / "src"),
        str(ROOT / "tests"),
        *([str(PACKAGE)] if root == "lm_eval" else []),
    ]
    done = subprocess.run(
        [sys.executable, str(BOTH), root, str(folder), what],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.rpartition("\n@")[2])


def same(folder: Path, what: str) -> int:
    """How many results both give, all of them equal."""
    theirs = results("lm_eval", folder, what)
    ours = results(OURS, folder, what)
    wrong = [
        (number, pair)
        for number, pair in enumerate(zip(theirs, ours, strict=True))
        if pair[0] != pair[1]
    ]
    assert not wrong, f"{len(wrong)} of {len(ours)} differ: {wrong[:3]}"
    return len(ours)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Byte-level BPE without and with BOS, BPE and Unigram with word marks, WordPiece with
    special tokens at both ends.
    """
    from tokenizers import (
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
        trainers,
    )

    folder = tmp_path_factory.mktemp("tokenizers")
    special = ["<unk>", "<s>", "</s>", "<|im_start|>"]
    lines = CORPUS.splitlines()
    first = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    both = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False)
    marks = pre_tokenizers.Metaspace()
    kinds: list[tuple[str, Any, Any, Any, Any]] = [
        ("bytes", models.BPE(), bytes_, trainers.BpeTrainer, None),
        ("bytes-bos", models.BPE(), bytes_, trainers.BpeTrainer, first),
        ("marks", models.BPE(unk_token="<unk>"), marks, trainers.BpeTrainer, first),
        ("unigram", models.Unigram(), marks, trainers.UnigramTrainer, first),
        ("words", models.WordPiece(unk_token="<unk>"), pre_tokenizers.BertPreTokenizer(), trainers.WordPieceTrainer, both),
    ]  # fmt: skip
    for name, model, parts, trainer, processor in kinds:
        tokenizer = Tokenizer(model)
        tokenizer.pre_tokenizer = parts
        how: dict[str, Any] = {
            "special_tokens": special,
            "show_progress": False,
            "vocab_size": 500,
        }
        if name.startswith("bytes"):
            how["initial_alphabet"] = pre_tokenizers.ByteLevel.alphabet()
            tokenizer.decoder = decoders.ByteLevel()
        if name == "unigram":
            how["unk_token"] = "<unk>"
        if name == "words":
            tokenizer.normalizer = normalizers.BertNormalizer()
        tokenizer.train_from_iterator(lines, trainer(**how))
        if processor is not None:
            tokenizer.post_processor = processor
        tokenizer.save(str(folder / f"{name}.json"))
    return folder


def test_pairs_are_split_alike(tokenizers: Path) -> None:
    assert same(tokenizers, "pairs") > 15_000


@pytest.mark.parametrize(
    ("what", "least"), [("windows", 4000), ("collators", 600), ("helpers", 13_000)]
)
def test_helpers_give_the_same(tmp_path: Path, what: str, least: int) -> None:
    assert same(tmp_path, what) >= least


def test_the_transformers_class_gives_the_same(tmp_path: Path) -> None:
    for kind in ("llama", "gpt2", "qwen2"):
        make_tiny_model(tmp_path / kind, kind)
    make_two_sided_model(tmp_path / "t5", "t5")
    assert same(tmp_path, "transformer") > 500
