"""A llama.cpp server: like `openai`, plus log-likelihoods, for which it has no echo.

Its completions return the log-probability of what they generate, by the model alone, whatever the
sampling. So the continuation is generated: a grammar of token numbers, one rule of them in their
order, leaves the server no choice, and the log-probabilities are those of the continuation. It
costs a step for each of its tokens; the server keeps the context from one request to the next. The
server reports nothing about a generated token that is only a part of a character: such a token is
looked up among the alternatives of another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from evalwright.core.errors import BadReply, Rejected
from evalwright.core.requests import LogLikelihood, RollingLogLikelihood
from evalwright.core.responses import Response
from evalwright.models.local.tokens import common_length, rolling_windows
from evalwright.models.remote.exchange import Call, Reply, largest_reply
from evalwright.models.remote.openai import OpenAIModel
from evalwright.models.remote.openai_echo import EchoedToken, NoEcho, sum_echoes
from evalwright.models.remote.providers import Provider
from evalwright.models.remote.wire.format import not_documented
from evalwright.models.remote.wire.openai_text import first_choice, text_of

NOT_FOUND = 404
_WHOLE = 1 << 20
"""Tokens of a window if the context length is unknown; the server refuses what is too long."""
_CERTAIN = 1e6
"""A logit bias that no other token comes near.

The log-probabilities that the server returns are those before the bias.
"""
_ALTERNATIVES = (1000, 1 << 20)
"""How many alternatives are requested: nearly always enough, then every token of any vocabulary."""


class LlamaCppModel(OpenAIModel):
    """A model of a llama.cpp server; `-M interface=completions` gives log-likelihoods.

    Arguments are those of `OpenAIModel`. `bos` is a text, if the model's own BOS is not wanted.
    """

    def __init__(self, provider: Provider, model: str, **options: Any) -> None:
        super().__init__(provider, model, **options)
        self._echo_is_known = True
        self._has_tokenize = True
        self._parts: set[int] = set()
        # The server's own paths, such as /tokenize, are beside those of OpenAI's API.
        self._root = self._make_client(
            self.pacing.timeout, self.base_url.removesuffix("/v1")
        )

    async def close(self) -> None:
        """Release connections."""
        await super().close()
        await self._root.close()

    async def _sent_all(
        self, request: LogLikelihood | RollingLogLikelihood, replies: list[Reply | None]
    ) -> Response:
        try:
            start = (
                await self._tokens(self._bos or "", special=not self._bos)
                if self._has_tokenize
                else []
            )
        except Rejected as error:
            if error.status != NOT_FOUND:
                raise
            self._has_tokenize = False
        if (
            not self._has_tokenize
        ):  # llama-cpp-python's server has no /tokenize, and echoes
            return await super()._sent_all(request, replies)
        if isinstance(request, RollingLogLikelihood):
            text = await self._tokens(request.text)
            if not text:
                return Response(log_likelihood=0.0, is_greedy=True, tokens_scored=0)
            self._require(start)
            echoed: list[EchoedToken] = []
            for window, targets in rolling_windows(
                text, start[-1], (self._context_length or _WHOLE) - 1
            ):
                echoed += await self._forced(
                    window[: len(window) - len(targets) + 1], targets, replies
                )
        else:
            context = text_of(request.context, self.settings)
            stripped = context.rstrip()
            full_text = (
                (self._bos if self._bos and not stripped else "")
                + context
                + request.continuation
            )
            tokens = await self._tokens(full_text, special=not self._bos)
            alone = await self._tokens(stripped, special=True) if stripped else start
            split = min(common_length(alone, tokens), len(tokens) - 1)
            self._require(tokens[:split])
            echoed = await self._forced(tokens[:split], tokens[split:], replies)
        return sum_echoes(echoed, [reply for reply in replies if reply is not None])

    def _require(self, context: Sequence[int]) -> None:
        if not context:
            raise Rejected(
                f"'{self.name}' has no token before the text that is scored: the"
                " context is empty and the model has no BOS. Pass the model's start"
                " token as text, for example -M 'bos=<s>', or give the task a context."
            )

    async def _tokens(self, text: str, *, special: bool = False) -> list[int]:
        """Return the text's tokens, by the server's own tokenizer.

        `special` adds the BOS that the model expects.
        """
        body = {
            "content": text,
            "add_special": special,
            "parse_special": True,
            "with_pieces": True,
        }
        payload = (await self._root.send(Call("/tokenize", body))).data
        rows = payload.get("tokens") if isinstance(payload, Mapping) else None
        if not isinstance(rows, list) or not all(
            type(_get_field(row, "id")) is int for row in rows
        ):
            raise not_documented(self.settings, "tokens with ids and pieces", payload)
        # A piece that is not valid text by itself is returned as bytes.
        self._parts.update(
            row["id"] for row in rows if isinstance(row.get("piece"), list)
        )
        return [row["id"] for row in rows]

    async def _forced(
        self,
        context: Sequence[int],
        targets: Sequence[int],
        replies: list[Reply | None],
    ) -> list[EchoedToken]:
        """Return the log-probability of each of `targets` after the tokens before it."""
        echoed: list[EchoedToken] = []
        for is_partial, run in groupby(targets, self._parts.__contains__):
            for tokens in [[token] for token in run] if is_partial else [list(run)]:
                before = [*context, *targets[: len(echoed)]]
                if is_partial:
                    echoed.append(await self._among_all(before, tokens[0], replies))
                    continue
                grammar = "root ::= " + " ".join(f"<[{token}]>" for token in tokens)
                rows = await self._written(
                    before, len(tokens), 1, {"grammar": grammar}, replies
                )
                if [_get_field(row, "id") for row in rows] != tokens:
                    raise BadReply(
                        f"{self.settings.where} wrote other tokens than its grammar"
                        " allows, so the text cannot be scored. Text that holds the"
                        " model's own end token is one such case."
                    )
                echoed += [_read_token(row, row) for row in rows]
        return echoed

    async def _among_all(
        self, context: Sequence[int], token: int, replies: list[Reply | None]
    ) -> EchoedToken:
        """Return the log-probability of a token that the server reports only as an alternative.

        Another token is generated, with this one as an alternative.
        """
        other_token = (await self._tokens("a"))[-1]
        for alternatives in _ALTERNATIVES:
            bias = {"logit_bias": [[other_token, _CERTAIN]]}
            rows = await self._written(context, 1, alternatives, bias, replies)
            tops = rows[0].get("top_logprobs") if rows else None
            for row in tops if isinstance(tops, list) else ():
                if _get_field(row, "id") == token:
                    return _read_token(row, rows[0])
        raise BadReply(
            f"{self.settings.where} gives no log-probability of token {token}."
        )

    async def _written(
        self,
        context: Sequence[int],
        count: int,
        alternatives: int,
        how: Mapping[str, Any],
        replies: list[Reply | None],
    ) -> list[Mapping[str, Any]]:
        """Return the rows of `count` tokens that are generated after `context`."""
        body = {
            "model": self.settings.model,
            "prompt": list(context),
            "max_tokens": count,
            "temperature": 0,
            "logprobs": alternatives,
            **how,
            **self.settings.extra_body,
        }
        replies.append(None)
        call = Call(
            "/completions", body, largest=largest_reply(count + alternatives // 8)
        )
        replies[-1] = reply = await self.client.send(call)
        block = first_choice(reply.data, self.settings).get("logprobs")
        content = block.get("content") if isinstance(block, Mapping) else None
        if not isinstance(content, list):
            raise NoEcho(
                f"{self.settings.where} sends no log-probabilities: its reply has no"
                " choices[0].logprobs.content."
            )
        return content[:count]


def _get_field(row: Any, name: str) -> Any:
    return row.get(name) if isinstance(row, Mapping) else None


def _read_token(row: Mapping[str, Any], step: Mapping[str, Any]) -> EchoedToken:
    """Return the token of a row, and whether it was the first of its step's `top_logprobs`."""
    log_prob = row.get("logprob")
    tops = step.get("top_logprobs")
    if (
        not isinstance(log_prob, int | float)
        or isinstance(log_prob, bool)
        or not math.isfinite(log_prob)
    ):
        raise BadReply(f"The log-probability of a token is {log_prob!r}.")
    first = _get_field(tops[0], "id") if isinstance(tops, list) and tops else None
    return EchoedToken(
        0, 0, float(log_prob), None if first is None else first == row.get("id")
    )


LlamaCppModel.__signature__ = OpenAIModel.__signature__
