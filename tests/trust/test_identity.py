"""A fingerprint is that of what answers: other weights, tokenizer, template or arguments are
another model, another folder is not.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from evalwright.cli import main
from evalwright.compat.lm_eval.models import model_classes as classes
from evalwright.core.errors import (
    ConfigurationError,
    ModelError,
    UnknownName,
    UsageError,
)
from evalwright.core.requests import Generate
from evalwright.core.responses import Response
from evalwright.models.built_in import BUILT_IN
from evalwright.models.local.demo import EMBEDDED
from evalwright.models.local.hf.source import find_source
from evalwright.models.local.model_files import content_hash
from evalwright.models.model_interface import LocalModel
from evalwright.models.registry import model, open_model
from evalwright.models.remote.batch.opening import open_batched
from evalwright.models.remote.litellm import LiteLLMModel
from support.command import write_questions

pytest.importorskip("torch")
pytest.importorskip("transformers")

MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "max_position_embeddings": 64,
}
FILES: dict[str, dict[str, Any]] = {
    "hf": {
        "config.json": MODEL, "model.safetensors": "weights", "tokenizer.json": "{}", "chat_template.jinja": "{{ 1 }}",
        "tokenizer_config.json": {"bos_token": "<s>"}, "generation_config.json": {"eos_token_id": 1},
        "special_tokens_map.json": {}, "modelling.py": "code", "additional_chat_templates/tools.jinja": "{{ 2 }}",
        "model.safetensors.index.json": {"weight_map": {"a": "parts/optimizer-1.safetensors"}},
        "parts/optimizer-1.safetensors": "more weights",
    },
    "onnx": {
        "model.onnx": b"graph \x0a\x08location\x12\x0bpart.of.bin\x1a\x00", "model.onnx_data": "weights", "part.of.bin": "weights",
        "config.json": {"max_position_embeddings": 64}, "tokenizer.json": "{}", "tokenizer_config.json": {"bos_token": "<s>"},
        "generation_config.json": {"eos_token_id": 1}, "chat_template.jinja": "{{ 1 }}",
    },
    "nli": {
        "config.json": {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "entailment", "1": "neutral"}},
        "model.safetensors": "weights", "tokenizer.json": "{}", "tokenizer_config.json": {"model_max_length": 64},
    },
    "minicheck": {
        "config.json": {"architectures": ["RobertaForSequenceClassification"], "model_type": "roberta"},
        "model.safetensors": "weights", "tokenizer.json": "{}", "tokenizer_config.json": {"model_max_length": 64},
    },
    "hhem": {
        "config.json": {"model_type": "t5", "d_model": 8}, "model.safetensors": "weights", "tokenizer.json": "{}",
        "tokenizer_config.json": {"tokenizer_class": "T5Tokenizer"},
    },
    "st": {
        "modules.json": [
            {"type": "sentence_transformers.models.Transformer", "path": ""},
            {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
        ],
        "config.json": MODEL, "model.safetensors": "weights", "tokenizer.json": "{}", "tokenizer_config.json": {"a": 1},
        "sentence_bert_config.json": {"max_seq_length": 32}, "1_Pooling/config.json": {"pooling_mode_mean_tokens": True},
    },
    "hdm2": {
        "config.json": {"base_model_name": "BASE"}, "ck/adapter_config.json": {"r": 8}, "ck/adapter_model.safetensors": "weights",
        "cx/adapter_config.json": {"r": 8},
    },
    "replay": {"samples.jsonl": {"prompt": "a", "response": "b"}},
    "reward": {
        "config.json": {"architectures": ["LlamaForSequenceClassification"], "id2label": {"0": "good", "1": "bad"}},
        "model.safetensors": "weights", "tokenizer.json": "{}", "tokenizer_config.json": {"model_max_length": 64},
    },
    "metricx": {
        "config.json": {"architectures": ["MT5ForRegression"], "model_type": "mt5", "vocab_size": 250112}, "model.safetensors": "weights",
        "tokenizer.json": "{}", "tokenizer_config.json": {"model_max_length": 64},
    },
    "bertscore": {
        "config.json": {"architectures": ["BertModel"], "num_hidden_layers": 12, "max_position_embeddings": 64},
        "model.safetensors": "weights", "tokenizer.json": "{}", "tokenizer_config.json": {"model_max_length": 64},
    },
    "comet": {
        "hparams.yaml": {
            "class_identifier": "regression_metric", "pool": "avg", "layer": "mix", "hidden_sizes": [4], "activations": "Tanh",
        },
        "model.safetensors": "weights", "config.json": {"model_type": "xlm-roberta", "max_position_embeddings": 64},
        "tokenizer.json": "{}", "tokenizer_config.json": {"model_max_length": 64},
    },
}  # fmt: skip
"""A model of each local backend, as files; nothing is loaded to know what it is."""
CHANGED: dict[tuple[str, str], Any] = {
    ("onnx", "model.onnx"): b"GRAPH \x0a\x08location\x12\x0bpart.of.bin\x1a\x00",
    ("st", "1_Pooling/config.json"): {"pooling_mode_max_tokens": True},
    ("st", "modules.json"): [
        *FILES["st"]["modules.json"],
        {"type": "sentence_transformers.models.Normalize", "path": "2"},
    ],
    ("replay", "samples.jsonl"): {"prompt": "a", "response": "c"},
    ("comet", "hparams.yaml"): {**FILES["comet"]["hparams.yaml"], "pool": "max"},
}
IDLE: dict[str, dict[str, Any]] = {
    "hf": {"batch_size": 3, "scoring": "plain", "memory": 1},
    "onnx": {"batch_size": 3, "threads": 1},
    "nli": {"batch_size": 3},
    "reward": {"batch_size": 3},
}
ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "hf": [
        {"dtype": "bfloat16"}, {"max_length": 32}, {"add_special_tokens": False}, {"add_bos": True}, {"chat_template": "tools"},
        {"enable_thinking": False}, {"trust_remote_code": True}, {"attn_implementation": "eager"}, {"max_tokens": 9},
        {"prefix_token": "</s>"}, {"quantization": "bitsandbytes-4bit"}, {"subfolder": "other"}, {"tokenizer": "OTHER"},
        {"peft": "OTHER"},
    ],
    "onnx": [{"max_length": 32}, {"chat_template": "{{ 3 }}"}, {"chat_template": False}, {"file": "other.onnx"}],
    "nli": [
        {"dtype": "bfloat16"}, {"label": "neutral"}, {"prompt": "hhem"}, {"chunk": 9}, {"max_length": 32}, {"tokenizer": "OTHER"},
    ],
    "minicheck": [{"dtype": "bfloat16"}, {"chunk": 9}, {"max_length": 32}],
    "hhem": [{"dtype": "bfloat16"}, {"chunk": 9}, {"max_length": 32}, {"prompt": "hhem"}, {"tokenizer": "OTHER"}],
    "hdm2": [{"dtype": "bfloat16"}, {"chunk": 9}, {"max_length": 32}, {"prompt": "another"}, {"layer": 3}, {"base": "OTHER"}],
    "reward": [{"dtype": "bfloat16"}, {"max_length": 32}, {"label": "bad"}, {"tokenizer": "OTHER"}],
    "metricx": [{"dtype": "bfloat16"}, {"max_length": 32}, {"version": "23"}, {"score_token": 7}, {"tokenizer": "OTHER"}],
    "bertscore": [{"dtype": "bfloat16"}, {"max_length": 32}, {"layer": 3}, {"tokenizer": "OTHER"}],
    "comet": [{"dtype": "bfloat16"}, {"max_length": 32}, {"encoder": "OTHER"}],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _own(own_folder: Path) -> None:
    """A working folder and a home for each test, with the decoder that a judge names as its own."""
    write(Path("BASE"), FILES["minicheck"])


def write(folder: Path, files: Mapping[str, Any]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (
            content
            if isinstance(content, str)
            else json.dumps(content)
            if not isinstance(content, bytes)
            else ""
        )
        path.write_bytes(content if isinstance(content, bytes) else text.encode())
    return folder


def fingerprint(backend: str, folder: Path, **given: Any) -> str:
    given.setdefault("device", "cpu") if backend not in ("onnx", "replay") else None
    given.setdefault("layer", 9) if backend == "bertscore" else None
    return open_model(f"{backend}/{folder}", given).fingerprint


@pytest.mark.parametrize("backend", FILES)
def test_the_same_content_is_the_same_model_wherever_it_lies(
    backend: str, tmp_path: Path
) -> None:
    one = write(tmp_path / "one", FILES[backend])
    other = Path(shutil.copytree(one, tmp_path / "elsewhere" / "other"))
    link = tmp_path / "link"
    link.symlink_to(other)
    (other / "README.md").write_text("a note")
    assert (
        fingerprint(backend, one)
        == fingerprint(backend, other)
        == fingerprint(backend, link)
    )
    assert fingerprint(backend, one) == fingerprint(
        backend, one, **IDLE.get(backend, {})
    )


@pytest.mark.parametrize(
    ("backend", "name"),
    [(backend, name) for backend, files in FILES.items() for name in files],
)
def test_every_file_that_answers_is_in_the_fingerprint(
    backend: str, name: str, tmp_path: Path
) -> None:
    content = FILES[backend][name]
    changed = CHANGED.get((backend, name)) or (
        content.swapcase() if isinstance(content, str) else {**content, "more": 1}
    )
    if content == "{}":
        changed = "[]"
    if name == "chat_template.jinja" or "additional" in name:
        changed = "{{ 9 }}"
    one = write(tmp_path / "one", FILES[backend])
    other = write(tmp_path / "other", {**FILES[backend], name: changed})
    assert fingerprint(backend, one) != fingerprint(backend, other)


@pytest.mark.parametrize("backend", ARGUMENTS)
def test_every_argument_that_changes_an_answer_is_in_the_fingerprint(
    backend: str, tmp_path: Path
) -> None:
    folder = write(tmp_path / "one", FILES[backend])
    other = write(
        tmp_path / "two",
        {
            **FILES["hf"],
            "adapter_config.json": {"peft_type": "LORA"},
            "tokenizer.json": "[1]",
        },
    )
    write(folder / "other", {**FILES["hf"], "model.safetensors": "others"})
    write(folder, {"other.onnx": "another graph"} if backend == "onnx" else {})
    changes = [
        {key: str(other) if value == "OTHER" else value for key, value in given.items()}
        for given in ARGUMENTS[backend]
    ]
    found = [fingerprint(backend, folder, **given) for given in ({}, *changes)]
    assert len(set(found)) == len(found)


def test_the_content_of_an_adapter_or_another_tokenizer_counts(tmp_path: Path) -> None:
    folder = write(tmp_path / "one", FILES["hf"])
    for argument in ("peft", "tokenizer"):
        other = write(
            tmp_path / "two",
            {
                **FILES["hf"],
                "adapter_config.json": {"peft_type": "LORA"},
                "adapter_model.safetensors": "a",
            },
        )
        before = fingerprint("hf", folder, **{argument: str(other)})
        write(other, {"adapter_model.safetensors": "b"})
        assert fingerprint("hf", folder, **{argument: str(other)}) != before


def test_weights_edited_in_place_with_size_and_time_put_back(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "m", {**FILES["hf"], "model.safetensors": b"a" * (2 << 20)}
    )
    weights = folder / "model.safetensors"
    long_ago = time.time_ns() - 3600 * 10**9
    os.utime(weights, ns=(long_ago, long_ago))
    notes = tmp_path / "home" / "hashes"
    # The hash is only noted once the file's last change is some time ago, which a test need not
    # wait for.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evalwright.core.file_hashes.SETTLED_SECONDS", -1.0)
        patch.setattr("evalwright.core.file_hashes._has_change_times", bool)
        before = content_hash(folder)
        assert len(list(notes.iterdir())) == 1
        with weights.open("r+b") as file:
            file.seek(1 << 20)
            file.write(b"b")
        os.utime(weights, ns=(long_ago, long_ago))
        assert content_hash(folder) != before
        other = tmp_path / "other.safetensors"
        other.write_bytes(b"c" * (2 << 20))
        os.utime(other, ns=(long_ago, long_ago))
        seen = {before, content_hash(folder)}
        weights.unlink()
        weights.symlink_to(other)
        assert content_hash(folder) not in seen


def test_files_that_change_between_the_fingerprint_and_the_loading(
    tmp_path: Path,
) -> None:
    source = find_source(str(write(tmp_path / "hf", FILES["hf"])), None)
    source.require_unchanged()
    write(tmp_path / "hf", {"model.safetensors": "others"})
    with pytest.raises(ModelError, match="changed after the run had begun"):
        source.require_unchanged()
    folder = Path(shutil.copytree(EMBEDDED / "demo-small", tmp_path / "onnx"))
    opened = open_model(f"onnx/{folder}")
    assert isinstance(opened, LocalModel)
    (folder / "tokenizer.json").write_text(
        (folder / "tokenizer.json").read_text() + " "
    )
    with pytest.raises(ModelError, match="changed after the run had begun"):
        opened.load()
    recorded = write(tmp_path / "r", FILES["replay"]) / "samples.jsonl"
    replay = open_model(f"replay/{recorded}")
    assert isinstance(replay, LocalModel)
    write(tmp_path / "r", {"samples.jsonl": {"prompt": "a", "response": "forged"}})
    [(_, answer)] = replay.answer_batch([Generate("a")])
    replay.unload()
    assert not isinstance(answer, Response)


PACKAGE = '''
import pathlib
class HFLM:
    """Answers with what its weights say, as the package's class of this name does."""
    def __init__(self, pretrained, revision="main", subfolder="", tokenizer=None, dtype="auto", batch_size=1, add_bos_token=None,
                 think_end_token=None, peft=None, trust_remote_code=False, device="cuda", **kwargs):
        self.weights = pathlib.Path(pretrained, "model.safetensors").read_text()
        print("batch size", batch_size)
    def generate_until(self, requests):
        return [self.weights for _ in requests]
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package lm_eval, as small as it can be."""
    registry = ModuleType("lm_eval.api.registry")
    backend = ModuleType("lm_eval.models.huggingface")
    backend.__dict__["__name__"] = backend.__name__
    exec(PACKAGE, backend.__dict__)
    registry.model_registry = {"hf": backend.HFLM}  # type: ignore[attr-defined]
    registry.get_model = registry.model_registry.__getitem__  # type: ignore[attr-defined]
    for name in ("lm_eval", "lm_eval.api", "lm_eval.models"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, registry.__name__, registry)
    monkeypatch.setitem(sys.modules, backend.__name__, backend)
    info = tmp_path / "site" / "lm_eval-0.4.9.dist-info"
    write(info, {"METADATA": "Metadata-Version: 2.1\nName: lm_eval\nVersion: 0.4.9\n"})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


@pytest.mark.usefixtures("package")
def test_weights_that_changed_behind_lm_eval_are_asked_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(tmp_path, 2)
    folder = write(tmp_path / "m", {**FILES["hf"], "model.safetensors": "one"})

    def sent(name: str, at: Path = folder, *more: str) -> str:
        arguments = [f"pretrained={at}", *more]
        given = [word for one in arguments for word in ("-M", one)]
        assert (
            main(
                [
                    "run",
                    "questions.yaml",
                    "--model",
                    "lm_eval/hf",
                    *given,
                    "--name",
                    name,
                ]
            )
            == 0
        )
        return capsys.readouterr().out

    assert "2 sent, 0 from the store" in sent("first", folder, "batch_size=7")
    assert "0 sent, 2 from the store" in sent("again")
    assert "0 sent, 2 from the store" in sent(
        "copy", Path(shutil.copytree(folder, tmp_path / "copy"))
    )
    write(folder, {"model.safetensors": "two"})
    assert "2 sent, 0 from the store" in sent("changed")
    assert "two" in (tmp_path / "runs" / "changed" / "samples.jsonl").read_text()
    for place, argument in enumerate(("add_bos_token=true", "think_end_token=</t>")):
        assert "2 sent, 0 from the store" in sent(f"argument {place}", folder, argument)
    record = json.loads((tmp_path / "runs" / "argument-1" / "run.json").read_text())
    assert record["model"]["arguments"]["think_end_token"] == "</t>"
    assert "batch size 7" in sent(
        "size",
        write(tmp_path / "n", {**FILES["hf"], "model.safetensors": "3"}),
        "batch_size=7",
    )


@pytest.mark.usefixtures("package")
def test_repositories_behind_lm_eval_are_known_by_their_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commits = {"some/model": "c1", "some/tokenizer": "t1"}

    def opened(name: str, revision: str | None, needs: str) -> Any:
        if name not in commits:
            raise ConfigurationError("It is gated.")
        return SimpleNamespace(commit=f"{commits[name]} at {revision}")

    def made(**given: Any) -> str:
        return open_model(
            "lm_eval/hf", {"pretrained": "some/model", **given}
        ).fingerprint

    monkeypatch.setattr(classes, "open_repository", opened)
    seen = [made(), made(revision="v2"), made(tokenizer="some/tokenizer")]
    assert made() == seen[0]
    commits |= {"some/model": "c2"}
    seen.append(made())
    commits |= {"some/tokenizer": "t2"}
    seen.append(made(tokenizer="some/tokenizer"))
    assert len(set(seen)) == len(seen)
    assert made(pretrained="not/found") != made(pretrained="not/found"), (
        "nothing is shared where it is not known"
    )
    assert made(trust_remote_code=True) != made(trust_remote_code=True)
    assert made(pretrained="not/found", fingerprint="named") == made(
        pretrained="not/found", fingerprint="named"
    )


class Plain(LocalModel):
    """A model class that says nothing of what it is."""

    heavy = False
    abilities = frozenset(("generate",))

    def __init__(self, name: str, *, size: int = 1) -> None:
        self.name = name

    def answer_batch(self, requests: Any) -> Any:
        for index, _ in enumerate(requests):
            yield index, Response("x", finish_reason="stop")


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    from evalwright.models import registry

    monkeypatch.setattr(registry._BACKENDS, "_found", dict(registry._BACKENDS._found))
    model("plain")(Plain)


@pytest.mark.usefixtures("plain")
def test_a_class_that_says_nothing_of_itself_shares_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(tmp_path, 2)

    def sent(name: str, *more: str) -> str:
        assert (
            main(["run", "questions.yaml", "--model", "plain/a", "--name", name, *more])
            == 0
        )
        shown = capsys.readouterr()
        assert ("-M fingerprint=NAME" in shown.err) is not bool(more)
        return shown.out

    assert "2 sent" in sent("one")
    assert "2 sent" in sent("two")
    assert "2 sent" in sent("three", "-M", "fingerprint=mine")
    assert "0 sent, 2 from the store" in sent("four", "-M", "fingerprint=mine")
    assert "2 sent" in sent("five", "-M", "fingerprint=mine", "-M", "size=2")
    assert "2 sent" in sent("six", "-M", "fingerprint=other")
    with pytest.raises(ConfigurationError, match="has a fingerprint of its own"):
        open_model("scripted/echo", {"fingerprint": "mine"})


LOCAL = {
    "hf": "hf", "onnx": "onnx", "nli": "nli", "minicheck": "minicheck", "hhem": "hhem", "hdm2": "hdm2", "st": "st", "replay": "replay",
    "demo": "small", "scripted": "echo", "oracle": "gold", "baseline": "lexical", "answers": "mine", "lm_eval": "hf",
    "reward": "reward", "metricx": "metricx", "bertscore": "bertscore", "comet": "comet", "likelihood": "demo/small",
    "verdict": "demo/small", "vllm-local": "vllm-local", "python": "bot.py:reply",
}  # fmt: skip


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("backend", LOCAL)
@pytest.mark.parametrize(
    "given",
    [
        {"batch_size": "banana"},
        {"batch_size": 0},
        {"btch_size": 1},
        {"no_such_thing": 1},
    ],
    ids=str,
)
def test_no_argument_is_swallowed(
    backend: str, given: dict[str, Any], tmp_path: Path
) -> None:
    name = (
        str(write(tmp_path / "m", FILES[backend]))
        if backend in FILES
        else LOCAL[backend]
    )
    if backend == "python":
        function_file = tmp_path / "bot.py"
        function_file.write_text("def reply(prompt):\n    return prompt\n")
        name = f"{function_file}:reply"
    needed: dict[str, dict[str, Any]] = {
        "lm_eval": {"pretrained": str(tmp_path)},
        "bertscore": {"layer": 9},
    }
    more = needed.get(backend, {})
    with pytest.raises(UsageError) as caught:
        open_batched(f"{backend}/{name}", {**more, **given}, home=tmp_path)
    takes = backend not in (
        "replay",
        "scripted",
        "oracle",
        "baseline",
        "answers",
        "vllm-local",
    )
    if "btch_size" in given and takes:
        assert "Did you mean 'batch_size'" in str(caught.value)
    assert (
        isinstance(caught.value, UnknownName)
        or "batch_size" in str(caught.value)
        or takes is False
    )


def test_all_backends_are_tried() -> None:
    remote = {"litellm", "reward-server", "vectara"}
    assert set(BUILT_IN) == set(LOCAL) | remote | {"lm"}


@pytest.mark.parametrize(
    "name",
    [
        "openai/m",
        "anthropic/m",
        "litellm/openai/m",
        "vectara/m",
        "reward-server/http://localhost:1#m",
    ],
)
@pytest.mark.parametrize(
    "given", [{"batch_size": 5}, {"no_such_thing": 1}, {"tempersture": 1}], ids=str
)
def test_no_argument_of_a_remote_model_is_swallowed(
    name: str, given: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"Unknown argument|add --batch"):
        open_batched(name, given, home=tmp_path)


def test_the_server_that_litellm_is_led_to_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def made(value: str | None, variable: str = "OPENAI_API_BASE") -> str:
        with pytest.MonkeyPatch.context() as patch:
            if value is not None:
                patch.setenv(variable, value)
            return LiteLLMModel("openai/m").fingerprint

    for variable in ("OPENAI_API_BASE", "OPENAI_BASE_URL", "AZURE_API_BASE"):
        monkeypatch.delenv(variable, raising=False)
    assert len({made(None), made("http://a/v1"), made("http://b/v1")}) == 3
    assert made("http://a/v1", "AZURE_API_BASE") == made(None)


def test_a_secret_in_what_is_sent_splits_the_store_and_a_key_that_lets_in_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def made(**given: Any) -> Any:
        return open_model("openai/m", {"base_url": "http://localhost:1/v1", **given})

    monkeypatch.setenv("ONE_KEY", "key-number-one")
    assert made(api_key_env="ONE_KEY").fingerprint == made().fingerprint
    bodies = [
        made(extra_body={"tenant_secret": secret})
        for secret in ("first-secret", "second-secret")
    ]
    assert bodies[0].fingerprint != bodies[1].fingerprint != made().fingerprint
    assert "first-secret" not in json.dumps(bodies[0].describe())
