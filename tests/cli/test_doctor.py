"""`evalwright doctor`: what works here; with --live real requests within a ceiling, a hub's
files, and devices against the CPU.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.command import Done, start
from support.hub_server import COMMIT, serving_hub
from support.openai_server import OpenAIServer, serving
from support.tiny_models import make_tiny_model
from support.typed import typed

KEY = "sk-a-key-that-nobody-may-see-0123456789"
NAMES = ("small-1", "small-2", "small-3", "small-4", "small-5", "small-6")
ROWS = """
[chatty]
base_url = "{host}/v1"
key = "LIVE_KEY"
example = "chatty/small-1"
[chatty.prices]
"*" = {{ input = 1.0, output = 4.0 }}

[anthropic-like]
base_url = "{host}/v1"
key = "LIVE_KEY"
auth = "header:x-api-key"
headers = {{ anthropic-version = "2023-06-01" }}
wires = ["anthropic"]
example = "anthropic-like/small-2"
[anthropic-like.prices]
"*" = {{ input = 1.0, output = 4.0 }}

[gemini-like]
base_url = "{host}/v1beta"
key = "LIVE_KEY"
auth = "header:x-goog-api-key"
wires = ["gemini"]
example = "gemini-like/small-3"
[gemini-like.prices]
"*" = {{ input = 1.0, output = 4.0 }}

[cohere-like]
base_url = "{host}/v2"
key = "LIVE_KEY"
wires = ["cohere"]
example = "cohere-like/small-4"
[cohere-like.prices]
"*" = {{ input = 1.0, output = 4.0 }}

[responsive]
base_url = "{host}/v1"
key = "LIVE_KEY"
wires = ["openai-responses"]
example = "responsive/small-5"
[responsive.prices]
"*" = {{ input = 1.0, output = 4.0 }}

[unpriced]
base_url = "{host}/v1"
key = "LIVE_KEY"
example = "unpriced/small-6"
"""
LIVE = ("doctor", "--live", "--plugin", "rows.toml", "--only", "providers")


@contextmanager
def provider(folder: Path, **how: Any) -> Iterator[OpenAIServer]:
    """A strict server, with the rows of providers that are there."""
    how = {"answer": lambda prompt: "Paris", "key": KEY, "models": NAMES, **how}
    with serving(**how) as server:
        (folder / "rows.toml").write_text(
            ROWS.format(host=server.url.removesuffix("/v1")), encoding="utf-8"
        )
        yield server


def doctor(folder: Path, *arguments: str) -> Done:
    return typed(
        *arguments, folder=folder, extra={"LIVE_KEY": KEY, "EVALWRIGHT_HOME": "home"}
    )


def checks_of(
    folder: Path, file: str = "doctor.json"
) -> dict[tuple[str, str], dict[str, Any]]:
    report = json.loads((folder / file).read_text(encoding="utf-8"))
    return {(check["subject"], check["name"]): check for check in report["checks"]}


def test_without_live_nothing_is_sent(tmp_path: Path) -> None:
    with provider(tmp_path) as server:
        done = doctor(tmp_path, "doctor", "--plugin", "rows.toml", "--json")
        assert done.code == 0, done.text
        assert not server.received
    report = json.loads(done.out)
    keys = next(check for check in report["checks"] if check["subject"] == "keys")
    assert (
        "chatty" in keys["facts"]["providers"]
        and "openai" not in keys["facts"]["providers"]
    )
    assert KEY not in done.text and not (tmp_path / "doctor.json").exists()


def test_every_format_that_a_provider_speaks_is_tried(tmp_path: Path) -> None:
    with provider(tmp_path) as server:
        done = doctor(tmp_path, *LIVE, "--yes")
        sent = len(server.log or ())
    checks = checks_of(tmp_path)
    for subject in (
        "chatty/small-1",
        "anthropic-like/small-2",
        "gemini-like/small-3",
        "cohere-like/small-4",
        "responsive/small-5",
    ):
        for name in ("text", "stream"):
            assert checks[subject, name]["outcome"] == "works", checks[subject, name]
            assert checks[subject, name]["facts"]["usage"]["input_tokens"] > 0
    assert checks["chatty/small-1", "unknown name"]["outcome"] == "works", checks[
        "chatty/small-1", "unknown name"
    ]
    assert checks["chatty/small-1", "log-probabilities"]["outcome"] == "look"
    assert checks["unpriced/small-6", "text"]["outcome"] == "skipped"
    report = json.loads((tmp_path / "doctor.json").read_text(encoding="utf-8"))
    assert (
        report["ceiling"] == {"dollars": 0.05} and 0 < report["spent"]["dollars"] < 0.05
    )
    assert report["spent"]["requests"] == sent
    assert KEY not in done.text and KEY not in json.dumps(report)
    assert "no more than $0.0500 is spent" in done.err


def test_the_ceiling_holds(tmp_path: Path) -> None:
    with provider(tmp_path) as server:
        few = doctor(
            tmp_path, *LIVE, "--yes", "--budget", "3 requests", "--out", "few.json"
        )
        assert len(server.log or ()) == 3
        nothing = doctor(
            tmp_path, *LIVE, "--yes", "--budget", "0.00001 USD", "--out", "nothing.json"
        )
        assert len(server.log or ()) == 3
    assert "no more than 3 requests is spent" in few.err
    assert {
        check["outcome"]
        for key, check in checks_of(tmp_path, "nothing.json").items()
        if key[1] == "text"
    } == {"skipped"}
    assert nothing.code == 0


def test_it_asks_before_it_spends(tmp_path: Path) -> None:
    with provider(tmp_path) as server:
        done = doctor(tmp_path, *LIVE)
        assert done.code == 2 and "add --yes" in done.err and "To be sent:" in done.err
        assert not server.received


def test_what_does_not_work_is_said(tmp_path: Path) -> None:
    with provider(tmp_path, key="another") as server:
        done = doctor(
            tmp_path,
            *LIVE,
            "--yes",
            "--model",
            "chatty/small-1",
            "--model",
            "unpriced/small-6",
            "--unpriced",
        )
        assert done.code == 1 and KEY not in done.text
        assert {key[0] for key in checks_of(tmp_path) if "/" in key[0]} == {
            "chatty/small-1",
            "unpriced/small-6",
        }
        assert "unpriced/small-6" in done.err and "tokens" in done.err
        assert server.received
    assert checks_of(tmp_path)["chatty/small-1", "text"]["outcome"] == "fails"
    wrong = doctor(tmp_path, *LIVE, "--yes", "--model", "chaty/small-1")
    assert wrong.code == 2 and "Did you mean 'chatty" in wrong.err


def test_a_server_that_takes_any_name_is_pointed_out(tmp_path: Path) -> None:
    with provider(tmp_path, models=None):
        done = doctor(tmp_path, *LIVE, "--yes", "--model", "chatty/small-1")
    assert done.code == 0, done.text
    assert checks_of(tmp_path)["chatty/small-1", "unknown name"]["outcome"] == "look"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("doctor", "--yes"), "--yes can only be used with --live"),
        (
            ("doctor", "--live", "--only", "hub", "--model", "openai/x"),
            "--model has no effect",
        ),
        (("doctor", "--live", "--budget", "much"), "cannot be read"),
        (
            (
                "doctor",
                "--live",
                "--only",
                "providers",
                "--model",
                "demo/small",
                "--yes",
            ),
            "a model in this process",
        ),
        (("doctor", "--live", "--only", "devices", "--out", "."), "is a folder"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = doctor(tmp_path, *arguments)
    assert done.code == 2 and words in done.err, done.text


def test_the_hub_and_the_devices(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    model = make_tiny_model(tmp_path / "tiny", "llama")
    files = {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()}
    rows = {
        "data/train.csv": b"id,text\n1,a\n2,b\n3,c\n",
        "README.md": b"---\nlicense: mit\n---\n",
    }
    with serving_hub(
        models={"hf-internal-testing/tiny-random-LlamaForCausalLM": files},
        datasets={"lhoestq/demo1": rows},
    ) as hub:
        extra = {
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(tmp_path / "cache"),
            "EVALWRIGHT_HOME": str(tmp_path / "home"),
            "HF_HUB_OFFLINE": "0",
        }
        process = start(
            ["doctor", "--live", "--only", "hub", "--only", "devices"], tmp_path, extra
        )
        out, err = process.communicate(timeout=1800)
        assert process.returncode == 0, "\n".join([out, err, *hub.requests])
        assert any("/api/datasets/lhoestq/demo1" in request for request in hub.requests)
    checks = checks_of(tmp_path)
    assert (
        checks["lhoestq/demo1", "data set"]["why"]
        == f"3 rows at revision {COMMIT[:12]}"
    )
    assert (
        checks["hf-internal-testing/tiny-random-LlamaForCausalLM", "model"]["outcome"]
        == "works"
    )
    assert checks["cpu", "likelihood and text"]["outcome"] == "works"
    bfloat16 = checks["cpu", "likelihood and text, bfloat16"]
    assert (
        bfloat16["outcome"] == "works"
        and 0 < bfloat16["facts"]["largest_difference"] < 0.1
    )


def test_a_hub_that_cannot_be_reached_fails_in_a_sentence(tmp_path: Path) -> None:
    extra = {
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "HF_HOME": str(tmp_path / "cache"),
        "EVALWRIGHT_HOME": str(tmp_path / "home"),
        "HF_HUB_OFFLINE": "0",
    }
    process = start(["doctor", "--live", "--only", "hub"], tmp_path, extra)
    out, err = process.communicate(timeout=1800)
    assert process.returncode == 1 and "Traceback" not in out + err
    assert "fails" in out and "HF_ENDPOINT" in out


def test_a_device_that_computes_otherwise_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("torch")
    from evalwright.evaluation.doctor import devices

    monkeypatch.setattr(devices, "BFLOAT16_MARGIN", 1e-6)
    outcomes = {check.name: check.outcome for check in devices.check_devices()}
    assert outcomes["likelihood and text, bfloat16"] == "fails"
