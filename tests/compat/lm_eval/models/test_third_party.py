"""Files of lm_eval 0.4.13 whose imports alone were changed load and run without the package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import pytest

from evalwright.core.requests import LogLikelihood
from evalwright.core.responses import Response
from evalwright.models.model_interface import LocalModel
from evalwright.models.registry import open_model
from support.openai_server import serving
from support.tiny_models import make_tiny_model

ROOT = Path(__file__).resolve().parents[4]
FILES = ROOT / ".venv" / "lm_eval" / "lm_eval" / "models"
CHILD = Path(__file__).with_name("borrowed.py")

pytestmark = pytest.mark.skipif(
    not FILES.is_dir(), reason=f"lm_eval is not at {FILES.parent}"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files with another root in their imports."""
    for name in ("textsynth", "openai_completions", "huggingface", "hf_steered"):
        text = (FILES / f"{name}.py").read_text(encoding="utf-8")
        changed = re.sub(
            r"^(\s*)from lm_eval( import|\.)",
            r"\1from evalwright.compat.lm_eval\2",
            text,
            flags=re.MULTILINE,
        )
        assert changed != text
        (tmp_path / f"their_{name}.py").write_text(changed, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("models") / "gpt2", "gpt2")


def run(folder: Path, what: str, **settings: Any) -> Any:
    environment = {
        name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"
    }
    environment |= {
        "PYTHONPATH": str(ROOT / "src"), "HF_HUB_OFFLINE": "1", "TEXTSYNTH_API_SECRET_KEY": "a key", "NO_PROXY": "*",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(CHILD), str(folder), what, json.dumps(settings)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.rpartition("\n@")[2])


class TextSynth(BaseHTTPRequestHandler):
    """The two calls as TextSynth documents them; whatever it does not document is refused."""

    FIELDS: ClassVar[dict[str, dict[str, Any]]] = {
        "logprob": {"context": str, "continuation": str},
        "completions": {
            "prompt": str,
            "max_tokens": int,
            "top_k": int,
            "stop": (str, list),
        },
    }

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        place = re.fullmatch(r"/v1/engines/gptj_6B/(\w+)", self.path)
        fields = self.FIELDS.get(place[1], {}) if place else {}
        good = body.keys() == fields.keys() and all(
            isinstance(body[name], kind) for name, kind in fields.items()
        )
        if (
            not good
            or len(body.get("stop", ())) > 5
            or self.headers["Authorization"] != "Bearer a key"
        ):
            self._reply(400, {"status": 400, "error": f"invalid: {sorted(body)}"})
        elif place and place[1] == "logprob":
            size = len(body["context"]) + len(body["continuation"])
            self._reply(
                200,
                {"logprob": -size / 4, "num_tokens": size, "is_greedy": size % 2 == 0},
            )
        else:
            self._reply(
                200,
                {
                    "text": body["prompt"].upper(),
                    "reached_end": True,
                    "input_tokens": 1,
                    "output_tokens": 1,
                },
            )

    def _reply(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None:
        """Not on the terminal."""


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.skipif(find_spec("requests") is None, reason="textsynth.py needs requests")
def test_textsynth(folder: Path) -> None:
    with listening(TextSynth) as url:
        abilities, found = run(folder, "textsynth", url=url)
    assert abilities == ["generate", "log-likelihood"], "its rolling method only raises"
    assert found == [
        [-7.0, True],
        [-11.25, False],
        [-4.75, False],
        [-2.5, True],
        "THE RIVER",
        "A",
        "LIGHT",
    ]


def test_completions_over_our_template(folder: Path, model: Path) -> None:
    with serving(model, extra=()) as server:
        found = run(folder, "completions", url=server.url, model=str(model))
    assert found[0] == found[1] == found[2] == found[3]
    local = open_model(f"hf/{model}", {"device": "cpu"})
    assert isinstance(local, LocalModel)
    local.load()
    pairs = [("The river rises in", " the hills"), ("Iron", " melts")]
    alone = dict(local.answer_batch([LogLikelihood(*pair) for pair in pairs]))
    for place, number in ((0, 0), (3, 1)):
        answer = alone[number]
        assert isinstance(answer, Response)
        assert answer.log_likelihood == pytest.approx(found[0][place][0], abs=2e-3)
        assert answer.is_greedy == found[0][place][1]
    assert all(isinstance(text, str) for text in found[0][4:7])


def test_chat_over_our_template(folder: Path) -> None:
    with serving() as server:
        found = run(folder, "chat", url=server.url)
    assert found[0] == found[1] == found[2] == found[3]
    assert all(
        isinstance(text, str) and text and "HTTP" not in text for text in found[0]
    )


def test_transformers_classes(folder: Path, model: Path) -> None:
    theirs, ours, wrapper, steered, strongly = run(
        folder, "transformers", model=str(model), place=str(folder), layer="h.1"
    )
    assert theirs == ours == wrapper == steered
    assert strongly[:4] != ours[:4]
