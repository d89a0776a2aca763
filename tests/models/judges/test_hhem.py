"""HHEM: its weights give the scores that the network gives by hand, alone as in company, and
what is wrong is said.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.core.requests import Classify, Generate
from evalwright.models.judges.trained import PUBLISHED, architecture
from evalwright.models.local.hf.source import Checkpoint, find_source
from support.pairs import PAIRS, failure, opened, supported
from support.tiny_judges import make_hhem

pytestmark = pytest.mark.torch

CARD = [
    (
        "The capital of France is Berlin.",
        "The capital of France is Paris.",
        0.011061512865126133,
    ),
    ("I am in California", "I am in United States.", 0.6473632454872131),
    ("I am in United States", "I am in California.", 0.1290171593427658),
    (
        "A person on a horse jumps over a broken down airplane.",
        "A person is outdoors, on a horse.",
        0.8969419002532959,
    ),
    (
        "A boy is jumping on skateboard in the middle of a red bridge.",
        "The boy skates down the sidewalk on a red bridge",
        0.18462494015693665,
    ),
    (
        "A man with blond-hair, and a brown shirt drinking out of a public water fountain.",
        "A blond man wearing a brown shirt is reading a book.",
        0.005031010136008263,
    ),
    (
        "Mark Wahlberg was a fan of Manny.",
        "Manny was a fan of Mark Wahlberg.",
        0.05432349815964699,
    ),
]
"""The seven pairs that the published model's card scores, and its scores."""

judge = partial(opened, "hhem")


def by_hand(network: Any, folder: Path, pair: Classify) -> float:
    """One pair through the network alone, as the model card describes it."""
    import torch
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(f"{folder}-foundation")
    text = (
        "<pad> Determine if the hypothesis is true given the premise?\n\n"
        f"Premise: {pair.premise}\n\nHypothesis: {pair.hypothesis}"
    )
    with torch.no_grad():
        logits = network(
            **tokenizer(text, return_tensors="pt", return_token_type_ids=False)
        ).logits
    return float(torch.softmax(logits[0, 0], dim=-1)[1])


def test_scores_are_those_of_the_network_by_hand(hhem: tuple[Path, Any]) -> None:
    folder, network = hhem
    wanted = [by_hand(network, folder, pair) for pair in PAIRS]
    assert max(wanted) - min(wanted) > 0.05
    assert supported(judge(folder), PAIRS) == pytest.approx(wanted, abs=1e-5)


def test_company_and_batches_change_nothing(hhem: tuple[Path, Any]) -> None:
    # Sums of 32-bit numbers differ in their last digits by the order in which threads add them.
    alone = [supported(judge(hhem[0]), [pair])[0] for pair in PAIRS]
    assert supported(judge(hhem[0], batch_size=2), PAIRS) == pytest.approx(
        alone, abs=1e-5
    )
    assert supported(judge(hhem[0]), [*PAIRS, *PAIRS]) == pytest.approx(
        [*alone, *alone], abs=1e-5
    )


@pytest.mark.parametrize("prefix", ["", "model.judge."])
def test_any_prefix_is_read(tmp_path: Path, prefix: str) -> None:
    folder, network = make_hhem(tmp_path / "other", prefix=prefix)
    wanted = [by_hand(network, folder, pair) for pair in PAIRS[:2]]
    assert supported(judge(folder), PAIRS[:2]) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            {"drop": "transformer.encoder.final_layer_norm.weight"},
            "lacks weights .*final_layer_norm",
        ),
        ({"add": "t5.something.weight"}, "unknown weights .*something.weight"),
        ({"add": "elsewhere.weight"}, "unknown weights .*elsewhere"),
        ({"drop": "classifier.weight"}, "lacks weights .*classifier.weight"),
    ],
)
def test_weights_that_do_not_belong_are_named(
    tmp_path: Path, how: dict[str, str], said: str
) -> None:
    folder, _ = make_hhem(tmp_path / "odd", **how)
    with pytest.raises(ConfigurationError, match=said):
        judge(folder).load()


def test_an_earlier_versions_tokenizer_is_left_alone_and_a_t5s_is_used(
    tmp_path: Path,
) -> None:
    folder, network = make_hhem(tmp_path / "judge")
    wanted = by_hand(network, folder, PAIRS[0])
    (folder / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "DebertaV2Tokenizer"}'
    )
    assert supported(judge(folder), PAIRS[:1]) == pytest.approx([wanted], abs=1e-5)
    before = judge(folder).describe()["tokenizer"]
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tmp_path / "judge-foundation" / file, folder / file)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(
        json.dumps({**settings, "tokenizer_class": "T5TokenizerFast"})
    )
    assert judge(folder).describe()["tokenizer"] != before
    named = judge(folder, tokenizer=str(tmp_path / "judge-foundation"))
    assert named.describe()["tokenizer"] == before
    assert supported(named, PAIRS[:1]) == pytest.approx([wanted], abs=1e-5)


def test_the_published_architecture_has_the_published_number_of_parameters(
    tmp_path: Path,
) -> None:
    import torch
    from transformers import T5Config, T5ForTokenClassification

    (tmp_path / "config.json").write_text(
        '{"model_type": "HHEMv2Config", "foundation": "google/flan-t5-base"}'
    )
    described = architecture(find_source(str(tmp_path), None))
    with torch.device("meta"):
        network = T5ForTokenClassification(T5Config(**described, num_labels=2))
    assert sum(parameter.numel() for parameter in network.parameters()) == 109_630_082
    silent = Checkpoint(
        where="x",
        revision=None,
        local=True,
        identity={},
        config={"model_type": "HHEMv2Config"},
    )
    assert architecture(silent) == described


def test_the_hubs_cache_is_enough(tmp_path: Path) -> None:
    """In a process of its own without a network: the checkpoint and its foundation are two
    repositories of the cache.
    """
    folder, network = make_hhem(tmp_path / "judge")
    wanted = by_hand(network, folder, PAIRS[0])
    commits = {"owner/judge": "a" * 40, "owner/foundation": "b" * 40}
    for name, made in (
        ("owner/judge", folder),
        ("owner/foundation", tmp_path / "judge-foundation"),
    ):
        repository = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
        (repository / "refs").mkdir(parents=True)
        (repository / "refs" / "main").write_text(commits[name])
        shutil.copytree(made, repository / "snapshots" / commits[name])
    config = (
        tmp_path
        / "hub/models--owner--judge/snapshots"
        / commits["owner/judge"]
        / "config.json"
    )
    config.write_text(
        json.dumps({**json.loads(config.read_text()), "foundation": "owner/foundation"})
    )
    code = (
        "import json; from evalwright.models.registry import open_model; from support.pairs import PAIRS, supported;"
        "m = open_model('hhem/owner/judge'); print(json.dumps([supported(m, PAIRS[:1]), m.describe()]))"
    )
    environment = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, said = json.loads(done.stdout)
    assert found == pytest.approx([wanted], abs=1e-5)
    assert said["revision"] == commits["owner/judge"]
    assert said["tokenizer"] == {
        "repository": "owner/foundation",
        "revision": commits["owner/foundation"],
    }


def test_a_premise_is_read_whole_unless_chunks_are_asked_for(
    hhem: tuple[Path, Any],
) -> None:
    from transformers import AutoTokenizer

    folder, network = hhem
    parts = [
        "The river rises in the hills.",
        "A baker gets up at three.",
        "Iron melts at 1538 degrees.",
    ]
    pair = Classify(" ".join(parts), "Iron melts.")
    assert supported(judge(folder), [pair]) == pytest.approx(
        [by_hand(network, folder, pair)], abs=1e-5
    )
    tokenizer = AutoTokenizer.from_pretrained(f"{folder}-foundation")
    longest = max(
        len(tokenizer.encode(part, add_special_tokens=False)) for part in parts
    )
    each = [by_hand(network, folder, Classify(part, pair.hypothesis)) for part in parts]
    assert supported(judge(folder, chunk=longest), [pair]) == pytest.approx(
        [max(each)], abs=1e-5
    )


def test_a_hypothesis_is_never_cut_and_only_pairs_are_judged(
    hhem: tuple[Path, Any],
) -> None:
    assert "never cut" in failure(
        judge(hhem[0], max_length=60), Classify("x", "The mill. " * 80)
    )
    assert "set chunk=auto" in failure(
        judge(hhem[0], max_length=60, chunk="none"), Classify("The mill. " * 80, "x")
    )
    ((_, answer),) = judge(hhem[0]).answer_batch([Generate("x")])
    assert "cannot do" in getattr(answer, "message", "")


def test_the_record_pins_prompt_and_tokenizer(
    hhem: tuple[Path, Any], tmp_path: Path
) -> None:
    found = judge(hhem[0])
    said = found.describe()
    assert said["values"] == ["not supported", "supported"]
    assert said["prompt"].startswith("<pad> Determine")
    assert found.fingerprint == judge(hhem[0]).fingerprint
    assert found.fingerprint != judge(hhem[0], chunk=100).fingerprint
    assert found.fingerprint != judge(hhem[0], prompt="hhem").fingerprint
    assert found.fingerprint == judge(hhem[0], batch_size=3).fingerprint


def test_what_cannot_be_used_is_said(
    judges: dict[str, Path], hhem: tuple[Path, Any], tmp_path: Path
) -> None:
    folder, _ = make_hhem(tmp_path / "old")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ConfigurationError, match="only format of weights"):
        judge(folder).check()
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(ConfigurationError, match="has no weights"):
        judge(folder).check()
    with pytest.raises(ConfigurationError, match="Other judges are nli"):
        judge(judges["bert"])
    with pytest.raises(ConfigurationError, match="'hhem-t5'"):
        judge(hhem[0], prompt="hhem-t6")
    with pytest.raises(ConfigurationError, match="chunk='some'"):
        judge(hhem[0], chunk="some")


def test_the_published_scores_come_out() -> None:
    """With the weights: in $EVALWRIGHT_HHEM (a folder), or in the hub's local cache."""
    where = os.environ.get("EVALWRIGHT_HHEM", "")
    if not where:
        from huggingface_hub import try_to_load_from_cache

        if not isinstance(try_to_load_from_cache(PUBLISHED, "model.safetensors"), str):
            pytest.skip(
                f"the weights of {PUBLISHED} are neither in $EVALWRIGHT_HHEM nor in the hub's cache"
            )
        where = PUBLISHED
    found = supported(
        judge(where), [Classify(premise, hypothesis) for premise, hypothesis, _ in CARD]
    )
    assert found == pytest.approx([score for _, _, score in CARD], abs=1e-4)
