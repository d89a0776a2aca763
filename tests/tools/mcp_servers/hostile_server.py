"""A server that breaks a rule, named by its argument; it needs nothing but Python."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

OBJECT: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "string"}}}

UNREADABLE = {
    "lone-surrogate": '"\\ud800"',
    "no-utf-8": '"\xff\xfe"',
    "deep-result": "[" * 100_000 + "]" * 100_000,
}
"""Texts of results that no strict reader of JSON takes."""


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


def tools(kind: str) -> list[dict[str, Any]]:
    ordinary = {"name": "echo", "description": "Echo.", "inputSchema": OBJECT}
    by_kind: dict[str, list[dict[str, Any]]] = {
        "array-schema": [{**ordinary, "inputSchema": {"type": "array"}}],
        "deep-schema": [{**ordinary, "inputSchema": deep(40)}],
        "huge-schema": [
            {**ordinary, "inputSchema": {**OBJECT, "description": "x" * 200_000}}
        ],
        "huge-description": [{**ordinary, "description": "x" * 30_000}],
        "many-tools": [{**ordinary, "name": f"tool{n}"} for n in range(2_000)],
        "long-name": [{**ordinary, "name": "x" * 200}],
        "no-name": [{**ordinary, "name": ""}],
        "same-names": [ordinary, ordinary],
        "near-names": [
            {**ordinary, "name": "read.file"},
            {**ordinary, "name": "read file"},
        ],
        "choice-name": [{**ordinary, "name": "required"}],
        "bad-properties": [
            {**ordinary, "inputSchema": {"type": "object", "properties": []}}
        ],
        "text-tools": "no list",  # type: ignore[dict-item]
        "slow-pattern": [
            {
                **ordinary,
                "outputSchema": {
                    "type": "object",
                    "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}},
                },
            }
        ],
    }
    return by_kind.get(kind, [ordinary])


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer_call(kind: str, identifier: Any) -> None:
    content = [{"type": "text", "text": "done"}]
    if kind == "other-id":
        send({"id": 9_999, "result": {"content": content}})
    elif kind == "twice":
        send({"id": identifier, "result": {"content": content}})
        send({"id": identifier, "result": {"content": content}})
    elif kind == "dies":
        sys.stderr.write(
            "Traceback: /usr/lib/secret/place.py\nout of memory in /usr/lib/x/y.py\n"
        )
        sys.exit(1)
    elif kind == "silent":
        time.sleep(3600)
    elif kind == "flood":
        while True:
            sys.stdout.write("x" * 1_000_000)
    elif kind == "flood-lines":
        while True:
            sys.stdout.write("noise\n" * 10_000)
    elif kind == "flood-messages":
        while True:
            send(
                {
                    "method": "notifications/message",
                    "params": {"level": "info", "data": "x"},
                }
            )
    elif kind in UNREADABLE:
        result = f'{{"content": [{{"type": "text", "text": {UNREADABLE[kind]}}}]}}'
        line = f'{{"jsonrpc": "2.0", "id": {identifier}, "result": {result}}}\n'
        sys.stdout.buffer.write(line.encode("latin-1"))
        sys.stdout.flush()
    elif kind == "no-content":
        send({"id": identifier, "result": {"content": 7}})
    elif kind == "huge-result":
        send(
            {
                "id": identifier,
                "result": {"content": [{"type": "text", "text": "y" * 5_000_000}]},
            }
        )
    elif kind == "too-huge-result":
        send(
            {
                "id": identifier,
                "result": {"content": [{"type": "text", "text": "y" * 20_000_000}]},
            }
        )
    elif kind == "slow-pattern":
        structured = {"x": "a" * 40 + "!"}
        send(
            {
                "id": identifier,
                "result": {"content": content, "structuredContent": structured},
            }
        )
    elif kind == "asks-back":
        send(
            {
                "id": "mine",
                "method": "sampling/createMessage",
                "params": {"messages": [], "maxTokens": 5},
            }
        )
        reply = json.loads(sys.stdin.readline())
        text = "refused" if "error" in reply else "answered"
        send(
            {"id": identifier, "result": {"content": [{"type": "text", "text": text}]}}
        )
    else:
        send({"id": identifier, "result": {"content": content}})


def main(kind: str) -> None:
    if kind == "never-starts":
        time.sleep(3600)
    if kind == "greets":
        print("Welcome to this server!", flush=True)
    pages = 0
    for line in sys.stdin:
        message = json.loads(line)
        identifier = message.get("id")
        method = message.get("method")
        if method == "initialize":
            send(
                {
                    "id": identifier,
                    "result": {
                        "protocolVersion": "1999-01-01"
                        if kind == "old-protocol"
                        else message["params"]["protocolVersion"],
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": "hostile", "version": "1"},
                    },
                }
            )
        elif method == "tools/list":
            listed: dict[str, Any] = {"tools": tools(kind)}
            if kind == "endless-pages":
                pages += 1
                listed = {"tools": [], "nextCursor": str(pages)}
            send({"id": identifier, "result": listed})
        elif method == "tools/call":
            answer_call(kind, identifier)


if __name__ == "__main__":
    main(sys.argv[1])
