"""An answer while it is generated: its tokens so far, and whether the last of them ended it."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.core.responses import Response, TokenLogProb, Usage
from evalwright.models.local.answering import Job, may_call
from evalwright.models.local.tokens import Encoder
from evalwright.models.model_interface import answers_tokens, stop_at, stop_in


class Pieces:
    """The characters that a token can add to a text, alone or after another; cached per token."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._characters: dict[int, frozenset[str] | None] = {}

    def may_hold(self, token: int, characters: frozenset[str]) -> bool:
        """Return whether the token may add one of these characters; true if it is a part of one."""
        if not characters:
            return False
        if token not in self._characters:
            # Some decoders drop a space at the start, so the token is also decoded after another.
            text = self._encoder.decode([token], False) + self._encoder.decode(
                [token, token], False
            )
            partial = "\N{REPLACEMENT CHARACTER}" in text or not text
            self._characters[token] = None if partial else frozenset(text)
        token_characters = self._characters[token]
        return token_characters is None or not token_characters.isdisjoint(characters)


class AnswerWriter:
    """Collects an answer's tokens one by one and detects its end: EOS, a stop string, or its limit.

    A stop string is searched only in the end of the answer, so that the cost does not grow with the
    answer. A visible token is at least one byte, so a stop string of n bytes is in the last n
    visible tokens; a few more allow for decoders that drop a leading space. `counts_end` says
    whether the usage counts the token that ended the answer.
    """

    def __init__(
        self,
        encoder: Encoder,
        end_tokens: frozenset[int],
        job: Job,
        pieces: Pieces,
        *,
        counts_end: bool = True,
    ) -> None:
        self.job = job
        self.written: list[int] = []
        self.values: list[tuple[float, Sequence[tuple[int, float]]]] = []
        """For each token, its log-probability and the alternatives as (token, log-probability).

        They are kept only if the request wants them.
        """
        self._encoder = encoder
        self._end_tokens = end_tokens
        self._pieces = pieces
        self._counts_end = counts_end
        self._stops = tuple(stop for stop in job.request.stop if stop)
        self._last = frozenset(stop[-1] for stop in self._stops)
        self._tail = max((len(stop.encode()) for stop in self._stops), default=0) + 4

    def add(self, token: int) -> Response | None:
        """Add a token; return the answer if this token ends it, else None."""
        self.written.append(token)
        if token in self._end_tokens or self._completes_a_stop(token):
            return self._response("stop")
        return self._response("length") if len(self.written) >= self.job.room else None

    def _completes_a_stop(self, token: int) -> bool:
        # Decoding a tail after every token of every row takes as long as a small model; most tokens
        # end no stop string.
        if not self._pieces.may_hold(token, self._last):
            return False
        text = self._encoder.decode(self.written[-self._tail :], False)
        return any(stop in text for stop in self._stops)

    def _response(self, reason: str) -> Response:
        written = self.written
        answer_tokens = written[:-1] if written[-1] in self._end_tokens else written
        # Some families mark calls of tools by special tokens.
        full_text = self._encoder.decode(
            answer_tokens, skip_special_tokens=not may_call(self.job.request)
        )
        text = stop_at(full_text, self._stops)
        tokens = token_texts(self._encoder, answer_tokens, self.values)
        return Response(
            text=text,
            tokens=tuple(tokens) if text == full_text else answers_tokens(tokens, text),
            finish_reason=reason,
            stopped_at=stop_in(full_text, self._stops) if self._stops else None,
            usage=Usage(
                input_tokens=len(self.job.tokens),
                output_tokens=len(written if self._counts_end else answer_tokens),
            ),
        )


def token_texts(
    encoder: Encoder,
    tokens: Sequence[int],
    values: Sequence[tuple[float, Sequence[tuple[int, float]]]],
) -> list[TokenLogProb]:
    """Return tokens with their log-probabilities, if any, and texts that add up to the whole text.

    If several tokens form one character, the last has its text.
    """
    token_log_probs: list[TokenLogProb] = []
    start = end = 0
    for number, (log_prob, others) in enumerate(values[: len(tokens)], 1):
        # Some decoders drop a space at the start, so a token's text is found by decoding it after
        # the tokens before it.
        before = encoder.decode(tokens[start:end], skip_special_tokens=True)
        after = encoder.decode(tokens[start:number], skip_special_tokens=True)
        text = ""
        if number == len(tokens) or not after.endswith("\N{REPLACEMENT CHARACTER}"):
            text = after[len(before) :]
            start = end
            end = number
        pairs = tuple(
            (encoder.decode([token_id], False), alternative_log_prob)
            for token_id, alternative_log_prob in others
        )
        token_log_probs.append(TokenLogProb(text, log_prob, pairs))
    return token_log_probs
