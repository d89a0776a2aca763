"""One answer while it is written: its tokens, and whether the last of them ended it."""

from __future__ import annotations

from evalwright.core.errors import Failure, ModelError
from evalwright.core.responses import Response, Usage
from evalwright.models.local.answering import Job
from evalwright.models.local.hf.loading import Loaded
from evalwright.models.local.hf.sampling import stream_of
from evalwright.models.local.tokens import Encoder, StopSearch, stop_at


class Writer:
    """Takes an answer's tokens one by one and tells when it has its end: EOS, a stop string, or its own limit."""

    def __init__(self, loaded: Loaded, job: Job, pieces: Pieces) -> None:
        self.job = job
        self.stream = stream_of(job.request, job.tokens)
        self.written: list[int] = []
        self._loaded = loaded
        self._pieces = pieces
        self._search = StopSearch(loaded.encoder, job.request.stop)
        self._last = frozenset(stop[-1] for stop in self._search.stops)

    def add(self, token: int) -> Response | None:
        """The answer if this token ends it."""
        self.written.append(token)
        if token in self._loaded.end_tokens or self._stops(token):
            return self._response("stop")
        return self._response("length") if len(self.written) >= self.job.room else None

    def _stops(self, token: int) -> bool:
        # Decoding a tail after every token of every row takes as long as a small model; most tokens end no stop string.
        return self._pieces.may_hold(token, self._last) and self._search.found(self.written)

    def _response(self, reason: str) -> Response:
        written = self.written
        kept = written[:-1] if written[-1] in self._loaded.end_tokens else written
        text = self._loaded.encoder.decode(kept, skip_special_tokens=True)
        return Response(
            text=stop_at(text, self.job.request.stop),
            finish_reason=reason,
            usage=Usage(input_tokens=len(self.job.tokens), output_tokens=len(written)),
        )


class Pieces:
    """Which characters a token can add to a text, by itself or after another; found once for each."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._characters: dict[int, frozenset[str] | None] = {}

    def may_hold(self, token: int, characters: frozenset[str]) -> bool:
        """Whether it may add one of these; yes where it is a part of a character."""
        if not characters:
            return False
        if token not in self._characters:
            self._characters[token] = self._of(token)
        known = self._characters[token]
        return known is None or not known.isdisjoint(characters)

    def _of(self, token: int) -> frozenset[str] | None:
        # Some decoders drop a space at the start, so the token is also seen after another.
        text = self._encoder.decode([token], False) + self._encoder.decode([token, token], False)
        return None if "\N{REPLACEMENT CHARACTER}" in text or not text else frozenset(text)


def not_a_number() -> Failure:
    """What an answer is whose logits were not numbers."""
    return ModelError(
        "The model's logits are not numbers; its dtype may be too small (try dtype=bfloat16 or float32)."
    ).as_failure()
