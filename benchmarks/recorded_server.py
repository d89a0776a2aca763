"""A server on loopback that speaks as OpenAI's does and answers by rule, so that two askings get
the same bytes.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def _summary(prompt: str) -> str:
    """Two sentences of the article, as they are or with a fault; now and then a refusal or nothing
    much.
    """
    sentences = re.split(
        r"(?<=[.!?])\s+",
        prompt.removeprefix("Article:").partition("\n\nTask:")[0].strip(),
    )
    summary = " ".join(sentences[hashed(prompt) % 3 :][:2])
    faults = [
        summary,
        summary,
        summary + " The mayor of Lindt paid 77 crowns for it.",
        re.sub(r"\d+", "41", summary),
        "I cannot summarise this.",
        summary.replace(" is ", " is not ").replace(" was ", " was not "),
        "Nothing.",
        " ".join(summary.split()[::-1]),
    ]
    return faults[hashed(prompt + "fault") % len(faults)] or "Nothing."


def hashed(text: str) -> int:
    """A fixed number for a text."""
    return int.from_bytes(
        blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest(), "big"
    )


class Server(ThreadingHTTPServer):
    """Chat, completions (with echo) and embeddings: a pure function of the request, counted. first:
    the first requests.
    """

    daemon_threads = True
    request_queue_size = 256
    allow_reuse_port = True

    def __init__(self, port: int, replies: Mapping[str, str]) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.replies = replies
        self.n_requests = 0
        self.lock = threading.Lock()
        self.first: list[str] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def answer(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The reply to one request."""
        if path.endswith("/embeddings"):
            text = str(body["input"])
            vector = [
                (hashed(f"{n}{word}") % 1000) / 500 - 1
                for n in range(8)
                for word in [text]
            ]
            return {
                "object": "list",
                "model": body["model"],
                "data": [{"object": "embedding", "index": 0, "embedding": vector}],
                "usage": {"prompt_tokens": 5, "total_tokens": 5},
            }
        chat = "messages" in body
        prompt = body["messages"][-1]["content"] if chat else body["prompt"]
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
        if body.get("echo"):
            pieces = re.findall(r"\s*\S+|\s+", prompt)
            places = [sum(map(len, pieces[:n])) for n in range(len(pieces))]
            values = [
                None,
                *(
                    -(hashed(prompt[:place]) % 1000) / 100 - 0.01
                    for place in places[1:]
                ),
            ]
            top = [
                None,
                *(
                    {piece: value}
                    for piece, value in list(zip(pieces, values, strict=True))[1:]
                ),
            ]
            logs = {
                "tokens": [*pieces, " end"],
                "token_logprobs": [*values, -1.0],
                "text_offset": [*places, len(prompt)],
                "top_logprobs": [*top, {" end": -1.0}],
            }
            choice |= {
                "text": prompt + " end",
                "logprobs": logs,
                "finish_reason": "length",
            }
        else:
            text = self.reply(prompt, int(body.get("seed") or 0))
            choice |= (
                {"message": {"role": "assistant", "content": text}}
                if chat
                else {"text": text}
            )
        usage = {
            "prompt_tokens": len(str(prompt).split()),
            "completion_tokens": 7,
            "total_tokens": 7 + len(str(prompt).split()),
        }
        return {
            "id": "r",
            "object": "chat.completion" if chat else "text_completion",
            "created": 0,
            "model": body["model"],
            "choices": [choice],
            "usage": usage,
        }

    def reply(self, prompt: str, seed: int) -> str:
        """A verdict where one is asked for, else the reply to the last question of the prompt, else
        digits.
        """
        marked = re.search(
            r'<article mark="(\w+)">\n(.*)\n</article.*<summary'
            r' mark="\1">\n(.*)\n</summary',
            prompt,
            re.DOTALL,
        )
        if marked:
            facts = [
                re.findall(r"\b(?:[A-Z]\w+|\d[\d.,]*)", part)
                for part in re.findall(r"(?m)^\[\d+\] (.*)$", marked[3])
            ]
            supported = [
                all(fact.strip(".,") in marked[2] for fact in names) for names in facts
            ]
            parts = [
                {"n": n, "supported": right, "reason": "by its names and numbers"}
                for n, right in enumerate(supported, 1)
            ]
            return json.dumps(
                {
                    "check": marked[1],
                    "sentences": parts,
                    "grade": 4 if all(supported) else 1,
                }
            )
        if prompt.startswith("Article:"):
            return _summary(prompt)
        question = prompt.rpartition("Question: ")[2].removesuffix("Answer:").strip()
        reply = self.replies.get(question)
        if reply is None or seed % 3 == 2:
            return f"The answer is {hashed(f'{seed}{prompt}') % 60}."
        return reply


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        with server.lock:
            server.n_requests += 1
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        if len(server.first) < 9:
            server.first.append(f"{self.path} {raw[:400].decode(errors='replace')}")
        body = json.loads(raw)
        data = json.dumps(server.answer(self.path, body)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""
