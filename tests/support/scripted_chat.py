"""A chat server on loopback that plays an agent's model: what it replies depends on the messages.

    with scripted_chat(reply) as server:
        ... server.url ... server.received ...

`reply(messages)` returns the text of the next reply, or the bash command of a call. Each request
that is answered whole is counted by its content, so that a test can say what was paid twice.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Messages = Sequence[Mapping[str, Any]]
Reply = Callable[[Messages], "str | Mapping[str, str]"]
"""Returns a text, or {"name": of a tool, "arguments": JSON}."""


@dataclass
class ScriptedChat:
    """The server's side of a test.

    Attributes:
        url: the base URL.
        received: how often each content arrived.
        bodies: the requests, in the order in which they arrived.
        seconds: how long each reply takes.
    """

    url: str = ""
    received: Counter[str] = field(default_factory=Counter)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def most_often(self) -> int:
        """How often the request came that came most often."""
        return max(self.received.values(), default=0)


@contextmanager
def scripted_chat(reply: Reply, seconds: float = 0.0) -> Iterator[ScriptedChat]:
    """Serve until the end of the block."""
    chat = ScriptedChat(seconds=seconds)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with chat.lock:
                chat.received[json.dumps(body, sort_keys=True)] += 1
                chat.bodies.append(body)
            time.sleep(chat.seconds)
            content = json.dumps(_completion(body, reply(body["messages"]))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

        def handle_error(self, *args: object) -> None:
            """Say nothing: clients are killed in these tests."""

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    chat.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield chat
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _completion(
    body: Mapping[str, Any], reply: str | Mapping[str, str]
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply}
    finish_reason = "stop"
    if not isinstance(reply, str):
        n_turns = len(body["messages"])
        call = {"id": f"call_{n_turns}", "type": "function", "function": dict(reply)}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        finish_reason = "tool_calls"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {
            "prompt_tokens": 10 * len(body["messages"]),
            "completion_tokens": 5,
            "total_tokens": 10 * len(body["messages"]) + 5,
        },
    }
