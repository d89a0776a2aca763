"""A chat server that answers at once, for measuring clients.

Prints its port and runs until it is stopped.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from measuring import serve_forever

REPLY = {
    "id": "c",
    "object": "chat.completion",
    "created": 0,
    "model": "instant",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "4"},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 8, "completion_tokens": 1, "total_tokens": 9},
}


async def chat(request: web.Request) -> web.Response:
    """Read the request, answer 4."""
    await request.json()
    return web.json_response(REPLY)


async def main() -> None:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    await serve_forever(app)


if __name__ == "__main__":
    asyncio.run(main())
