"""What the released package's clients send to a server, and what `lm/<client>/<model>` sends:
the same bodies, whole.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evalwright.compat.lm_eval import simple_evaluate
from evalwright.core.errors import ConfigurationError, UnknownName, UsageError
from evalwright.models.registry import open_model
from support.tiny_models import make_tiny_model

ROOT = Path(__file__).resolve().parents[4]
PACKAGE = ROOT / ".venv" / "lm_eval"
CHILD = Path(__file__).with_name("served_child.py")
needs_package = pytest.mark.skipif(
    not (PACKAGE / "lm_eval").is_dir(), reason=f"lm_eval is not at {PACKAGE}"
)
pytestmark = pytest.mark.torch
pytest.importorskip("datasets")

ROWS = [
    {"q": "Which planet is the largest?", "choices": ["Jupiter", "Mars"], "a": 0},
    {"q": "Which is red?  ", "choices": ["the red planet Mars", "Vega"], "a": 0},
    {"q": "東京 is where?", "choices": ["Japan", "Peru"], "a": 0},
]
HEAD = """
task: NAME
dataset_path: json
dataset_kwargs: {data_files: {train: FOLDER/rows.jsonl, test: FOLDER/rows.jsonl}}
training_split: train
test_split: test
"""
TASKS = {
    "choice": "output_type: multiple_choice\ndoc_to_text: '{{q}}'\ndoc_to_choice: choices\ndoc_to_target: a\nmetric_list: [{metric: acc}]\n",
    "empty": "output_type: loglikelihood\ndoc_to_text: ''\ndoc_to_target: '{{q}}'\nmetric_list: [{metric: perplexity}]\n",
    "rolling": "output_type: loglikelihood_rolling\ndoc_to_text: ''\ndoc_to_target: '{{q}} {{q}} {{q}}'\n"
    "metric_list: [{metric: word_perplexity}, {metric: byte_perplexity}]\n",
    "plain": "doc_to_text: '{{q}}'\ndoc_to_target: '{{choices[0]}}'\nmetric_list: [{metric: exact_match}]\n",
    "written": "doc_to_text: '{{q}}'\ndoc_to_target: '{{choices[0]}}'\n"
    "generation_kwargs: {until: ['a', 'b', 'c', 'd', 'e'], do_sample: false, temperature: 0.7, top_p: 0.9, max_gen_toks: 11}\n"
    "metric_list: [{metric: exact_match}]\n",
    "twice": "doc_to_text: '{{q}}'\ndoc_to_target: '{{choices[0]}}'\nrepeats: 2\ngeneration_kwargs: {until: [\"\\n\"]}\n"
    "metric_list: [{metric: exact_match}]\n",
    "unlimited": "doc_to_text: '{{q}}'\ndoc_to_target: '{{choices[0]}}'\ngeneration_kwargs: {until: \"\\n\", repetition_penalty: 1.1}\n"
    "metric_list: [{metric: exact_match}]\n",
}
TENACITY = """
class RetryError(Exception):
    pass


def stop_after_attempt(n):
    return n


def wait_exponential(**how):
    return how


def retry(**how):
    return lambda function: function
"""


class Handler(BaseHTTPRequestHandler):
    """Answers as OpenAI's and Anthropic's interfaces do, and keeps the bodies."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server: Any = self.server
        known = {
            "/v1/completions": self._completion,
            "/v1/chat/completions": self._chat,
            "/v1/messages": self._message,
        }
        if self.path not in known:
            self._send(404, {"error": {"message": "no such path"}})
            return
        if (
            body.get("prompt") != "One two three"
        ):  # what finds out whether a server echoes
            server.bodies.append((self.path, body))
        self._send(200, known[self.path](body))

    def do_GET(self) -> None:
        self._send(404, {"error": {"message": "no such path"}})

    def _completion(self, body: Mapping[str, Any]) -> dict[str, Any]:
        prompts = body["prompt"]
        if isinstance(prompts, str) or isinstance(prompts[0], int):
            prompts = [prompts]
        choices = [
            self._choice(place, prompt, body) for place, prompt in enumerate(prompts)
        ]
        return {"id": "x", "model": "m", "choices": choices, "usage": self._usage()}

    def _choice(
        self, place: int, prompt: Any, body: Mapping[str, Any]
    ) -> dict[str, Any]:
        choice = {"index": place, "text": "Jupiter", "finish_reason": "stop"}
        if not body.get("echo"):
            return choice
        units = list(prompt)
        values = [
            None,
            *(-(sum(str(unit).encode()) % 7 + 1) / 3 for unit in units[1:]),
            -1.0,
        ]
        tokens = [str(unit) for unit in units] + ["!"]
        tops = [
            None,
            *(
                {token: value}
                for token, value in zip(tokens[1:], values[1:], strict=True)
            ),
        ]
        echoed = prompt + "!" if isinstance(prompt, str) else "text"
        logprobs = {"tokens": tokens, "token_logprobs": values, "top_logprobs": tops}
        return {**choice, "text": echoed, "logprobs": logprobs}

    def _chat(self, body: Mapping[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": "Jupiter and a"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {"id": "x", "model": "m", "choices": [choice], "usage": self._usage()}

    def _message(self, body: Mapping[str, Any]) -> dict[str, Any]:
        content = [{"type": "text", "text": "Jupiter"}]
        usage = {"input_tokens": 3, "output_tokens": 2}
        return {
            "id": "x",
            "model": "m",
            "role": "assistant",
            "content": content,
            "stop_reason": "end_turn",
            "usage": usage,
        }

    def _usage(self) -> dict[str, int]:
        return {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}

    def _send(self, status: int, data: Any) -> None:
        text = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is printed."""


@contextmanager
def listening() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.bodies = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    tasks = folder / "tasks"
    tasks.mkdir()
    (tasks / "rows.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8"
    )
    for name, text in TASKS.items():
        head = HEAD.replace("NAME", name).replace("FOLDER", str(tasks))
        (tasks / f"{name}.yaml").write_text(head + text, encoding="utf-8")
    (folder / "tenacity.py").write_text(TENACITY)
    make_tiny_model(folder / "tiny", chat=True)
    return folder


def sent(server: Any) -> list[str]:
    bodies = sorted(json.dumps(body, sort_keys=True) for body in server.bodies)
    server.bodies.clear()
    return bodies


def theirs(
    place: Path, model: str, arguments: Mapping[str, Any], settings: Mapping[str, Any]
) -> Any:
    paths = [str(place), str(PACKAGE), str(ROOT / "src")]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "NO_PROXY": "*",
        "HF_DATASETS_CACHE": str(place / "cache"),
    }  # fmt: skip
    done = subprocess.run(
        [
            sys.executable,
            str(CHILD),
            str(place / "tasks"),
            model,
            json.dumps(arguments),
            json.dumps(settings),
        ],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.rpartition("\n@")[2])


def numbers(results: Mapping[str, Any]) -> dict[str, float]:
    return {
        f"{task} {name}": value
        for task, row in results.items()
        for name, value in row.items()
        if isinstance(value, float) and "stderr" not in name
    }


SCORED = ["choice", "empty", "rolling", "plain", "written", "unlimited"]
GENERATED = ["plain", "written", "unlimited"]
# Where its client for Anthropic is left without a stop string, it sends [null], which the server
# refuses; ours sends "\\n\\nHuman:".
CASES = [
    ("local-completions", {"tokenizer": "TINY"}, {"tasks": SCORED, "num_fewshot": 1}),
    ("local-completions", {"tokenizer": "TINY", "max_length": 40, "seed": 7}, {"tasks": SCORED}),
    ("local-completions", {"tokenizer": "TINY", "tokenized_requests": False, "max_gen_toks": 33}, {"tasks": SCORED}),
    ("local-completions", {"tokenizer": "TINY", "add_bos_token": True, "eos_string": "END"}, {"tasks": SCORED}),
    ("local-completions", {"tokenizer": "TINY", "num_concurrent": 4, "custom_prefix_token_id": 5}, {"tasks": SCORED}),
    ("local-completions", {"tokenizer": "TINY"}, {"tasks": GENERATED, "apply_chat_template": True, "num_fewshot": 1}),
    ("local-completions", {"tokenizer_backend": "None"}, {"tasks": GENERATED, "gen_kwargs": "top_k=5,frequency_penalty=0.5"}),
    ("local-chat-completions", {}, {"tasks": GENERATED, "apply_chat_template": True, "system_instruction": "Be brief."}),
    ("local-chat-completions", {"num_concurrent": 3, "eos_string": "END"}, {"tasks": GENERATED, "apply_chat_template": True}),
    ("openai-chat-completions", {"model": "gpt-4o-mini"}, {"tasks": GENERATED, "apply_chat_template": True, "num_fewshot": 2}),
    ("openai-chat-completions", {"model": "gpt-4o-mini", "num_concurrent": 2}, {"tasks": GENERATED, "apply_chat_template": True}),
    ("openai-chat-completions", {"model": "o3-mini"}, {"tasks": GENERATED, "apply_chat_template": True}),
    ("openai-chat-completions", {"model": "gpt-3.5-turbo", "max_gen_toks": 50}, {"tasks": GENERATED, "apply_chat_template": True}),
    ("openai-completions", {"model": "davinci-002", "tokenizer_backend": "huggingface", "tokenizer": "TINY"}, {"tasks": SCORED}),
    ("local-completions", {"tokenizer": "TINY"}, {"tasks": ["twice"]}),
    ("local-chat-completions", {"num_concurrent": 2}, {"tasks": ["twice"], "apply_chat_template": True}),
    ("anthropic-chat", {"model": "claude-3-haiku"}, {"tasks": ["written"], "apply_chat_template": True, "system_instruction": "Be brief."}),
    ("anthropic-chat", {"model": "claude-3-haiku", "num_concurrent": 2}, {"tasks": GENERATED, "apply_chat_template": True}),
]  # fmt: skip
ENDINGS = {
    "anthropic-chat": "messages",
    "local-completions": "completions",
    "openai-completions": "completions",
}


@needs_package
@pytest.mark.parametrize(
    ("model", "arguments", "settings"), CASES, ids=[str(n) for n in range(len(CASES))]
)
def test_bodies_and_numbers_are_those_of_the_released_package(
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    arguments: dict[str, Any],
    settings: dict[str, Any],
) -> None:
    monkeypatch.chdir(tmp_path)
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(key, "a-key")
    given = {"model": "m", **arguments}
    if given.get("tokenizer") == "TINY":
        given["tokenizer"] = str(place / "tiny")
    with listening() as server:
        ending = ENDINGS.get(model, "chat/completions")
        given["base_url"] = f"http://127.0.0.1:{server.server_port}/v1/{ending}"
        wanted_results = theirs(place, model, given, settings)
        wanted = sent(server)
        results = simple_evaluate(
            model,
            model_args=given,
            include_path=str(place / "tasks"),
            bootstrap_iters=0,
            **settings,
        )["results"]
        ours = sent(server)
    assert wanted, "the package sent nothing"
    assert ours == wanted
    assert numbers(results) == pytest.approx(numbers(wanted_results))


def asked(
    place: Path, client: str, tasks: list[str], **arguments: Any
) -> tuple[Any, list[dict[str, Any]]]:
    """The results of a client, and the bodies that it sent."""
    with listening() as server:
        given = {
            "base_url": f"http://127.0.0.1:{server.server_port}/v1/{ENDINGS.get(client, 'chat/completions')}",
            **arguments,
        }
        found = simple_evaluate(
            client,
            model_args=given,
            include_path=str(place / "tasks"),
            bootstrap_iters=0,
            tasks=tasks,
        )
        return found, [body for _, body in server.bodies]


def test_each_repeat_is_sent_without_sampling_too(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found, bodies = asked(place, "local-chat-completions", ["twice"], model="m")
    assert len(bodies) == 2 * len(ROWS)
    assert [len(line["resps"][0]) for line in found["samples"]["twice"]] == [2] * len(
        ROWS
    )


def test_without_a_tokenizer_texts_are_sent_and_that_is_said(
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found, bodies = asked(
        place, "local-completions", ["choice", "plain"], model="./no-such-model"
    )
    assert 0 <= found["results"]["choice"]["acc,none"] <= 1
    assert all(isinstance(body["prompt"], str) for body in bodies)
    assert "texts are sent in place of token ids" in caplog.text
    with pytest.raises(
        ConfigurationError,
        match="tokenizer of 'lm/local-completions/m'",
    ):
        asked(
            place,
            "local-completions",
            ["plain"],
            model="m",
            tokenizer="./no-such-tokenizer",
        )


def test_a_server_that_does_not_echo_is_no_score_of_zero(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    choice = Handler._choice
    monkeypatch.setattr(
        Handler,
        "_choice",
        lambda self, place, prompt, body: choice(self, place, "ab", body),
    )
    with pytest.raises(UsageError, match="log-likelihood"):
        asked(
            place,
            "local-completions",
            ["choice"],
            model="m",
            tokenizer=str(place / "tiny"),
        )


def test_reasoning_before_its_end_is_left_out(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found, _ = asked(
        place,
        "local-chat-completions",
        ["plain"],
        model="m",
        think_end_token="Jupiter and ",
    )
    assert [line["resps"] for line in found["samples"]["plain"]] == [[["a"]]] * len(
        ROWS
    )
    with pytest.raises(UnknownName, match="think_end_token"):
        open_model(
            "lm/local-chat-completions/m",
            {"base_url": "http://127.0.0.1:1/v1", "think_end": "x"},
        )
