"""A server with what llama.cpp's server has for text: /tokenize, and completions that follow a
grammar of token numbers.

A real transformer answers. Fields and refusals are those of llama.cpp's sources: `echo` is refused,
`logprobs` is the number of alternatives, and log-probabilities are those of the model before any
sampling, in the form of a chat's.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from aiohttp import web

from support.openai_answers import TransformersAnswers
from support.openai_server import Startable

RULE = re.compile(r"root ::= (<\[\d+\]>(?: <\[\d+\]>)*)")


def token_bytes(tokenizer: Any, token: int) -> bytes:
    """What a byte-level token stands for; a special token's own text."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    alphabet = {chr(byte): byte for byte in plain}
    unprintable = [byte for byte in range(256) if byte not in plain]
    alphabet |= {
        chr(256 + byte_index): byte for byte_index, byte in enumerate(unprintable)
    }
    letters = tokenizer.convert_ids_to_tokens(token)
    return (
        letters.encode()
        if token in tokenizer.all_special_ids
        else bytes(map(alphabet.__getitem__, letters))
    )


def is_part(raw: bytes) -> bool:
    """Whether it is not text by itself."""
    return raw.decode(errors="ignore").encode() != raw


class LlamaCppServer(Startable):
    """url: with /v1. context: tokens of a prompt and what is written. grammars: False for a
    server too old for grammars of tokens.
    """

    def __init__(
        self, folder: Path, *, context: int = 1024, grammars: bool = True
    ) -> None:
        self.answers = TransformersAnswers(folder)
        self.context = context
        self.grammars = grammars
        self.received: list[dict[str, Any]] = []
        self.url = ""

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/tokenize", self._tokenize)
        app.router.add_post("/v1/completions", self._complete)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _tokenize(self, request: web.Request) -> web.Response:
        body = await request.json()
        special = bool(body.get("add_special", False))
        tokens = self.answers.tokenizer(body["content"], add_special_tokens=special)[
            "input_ids"
        ]
        assert body["with_pieces"]
        rows = []
        for token in tokens:
            raw = token_bytes(self.answers.tokenizer, token)
            rows.append(
                {"id": token, "piece": list(raw) if is_part(raw) else raw.decode()}
            )
        return web.json_response({"tokens": rows})

    async def _complete(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.received.append(body)
        try:
            return web.json_response(self._written(body))
        except ValueError as error:
            error_body = {
                "code": 400,
                "message": str(error),
                "type": "invalid_request_error",
            }
            return web.json_response({"error": error_body}, status=400)

    def _written(self, body: dict[str, Any]) -> dict[str, Any]:
        if body.get("echo"):
            raise ValueError("Only no echo is supported")
        prompt = body["prompt"]
        tokenizer = self.answers.tokenizer
        tokens = (
            tokenizer(prompt)["input_ids"] if isinstance(prompt, str) else list(prompt)
        )
        forced = None
        if "grammar" in body:
            rule = RULE.fullmatch(body["grammar"]) if self.grammars else None
            if rule is None:
                raise ValueError("Failed to parse grammar")
            forced = [int(token) for token in re.findall(r"\d+", rule[1])]
            if any(is_part(token_bytes(tokenizer, token)) for token in forced):
                raise ValueError("Unexpected empty grammar stack after accepting piece")
        if "logit_bias" in body:
            ((token, bias),) = body["logit_bias"]
            assert body["max_tokens"] == 1 and bias > 1000
            forced = [token]
        if len(tokens) >= self.context:
            raise ValueError(
                f"request ({len(tokens)} tokens) exceeds the available context size ({self.context} tokens)"
            )
        generated, content = self._steps(
            tokens, body.get("max_tokens", 16), forced, body.get("logprobs", 0)
        )
        usage = {
            "prompt_tokens": len(tokens),
            "completion_tokens": len(generated),
            "total_tokens": len(tokens) + len(generated),
        }
        choice = {
            "text": tokenizer.decode(generated),
            "index": 0,
            "logprobs": content and {"content": content},
            "finish_reason": "length",
        }
        return {
            "choices": [choice],
            "object": "text_completion",
            "model": body.get("model", ""),
            "usage": usage,
        }

    def _steps(
        self, tokens: list[int], most: int, forced: list[int] | None, alternatives: int
    ) -> tuple[list[int], list[dict[str, Any]]]:
        import torch

        generated: list[int] = []
        content = []
        for step in range(min(most, len(forced) if forced is not None else most)):
            with torch.inference_mode():
                logits = self.answers.model(
                    input_ids=torch.tensor([[*tokens, *generated]])
                ).logits[0, -1]
            values = torch.log_softmax(logits.float(), dim=-1)
            token = int(values.argmax()) if forced is None else forced[step]
            generated.append(token)
            part = is_part(token_bytes(self.answers.tokenizer, token))
            # the real one holds back what is no text yet, and then forgets it
            if alternatives and not part:
                alternatives = min(alternatives, len(values))
                tops = [
                    self._row(values, int(index))
                    for index in values.topk(alternatives).indices
                ]
                content.append({**self._row(values, token), "top_logprobs": tops})
        return generated, content

    def _row(self, values: Any, token: int) -> dict[str, Any]:
        return {
            "id": token,
            "token": self.answers.tokenizer.decode([token]),
            "logprob": float(values[token]),
        }
