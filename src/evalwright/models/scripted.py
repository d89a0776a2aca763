"""Models that follow a script: for tests, for trying out a task, and as baselines.

No model is behind them.

    ScriptedModel("Paris")                                   always the same text
    ScriptedModel({"2 + 2 =": "4"})                          by prompt
    ScriptedModel(lambda request: "Paris")                   by a function
    ScriptedModel(["first", RateLimited("slow down"), "third"])      one after another

An answer may be a Response, a text, a mapping with `text` and `tool_calls`
(`models.reply_mappings`), a number or numbers, or a RequestError (raised or given). What
a text means depends on the request: it is the reply to a Generate; to a LogLikelihood it says what
the model would have written, so that this continuation is certain and any other is not.

`scripted/echo`, `scripted/constant`, `scripted/hash` and `scripted/lead` are the same by name, for
the command line.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Any, get_args

from evalwright.core.errors import (
    ConfigurationError,
    Failure,
    ModelError,
    Rejected,
    RequestError,
    check_known,
)
from evalwright.core.requests import (
    Ability,
    Classify,
    Embed,
    Generate,
    LogLikelihood,
    Prompt,
    Request,
    Reward,
    RollingLogLikelihood,
    prompt_payload,
)
from evalwright.core.responses import Response
from evalwright.models.model_interface import (
    EVERY_OPTION,
    LocalModel,
    Model,
    Pacing,
    RemoteModel,
    fingerprint_of,
)
from evalwright.models.reply_mappings import reply_to

Scripted = Response | RequestError | str | float | Sequence[float] | Mapping[str, Any]
Script = Callable[[Request], Scripted | Awaitable[Scripted]]
Answers = str | Script | Mapping[Any, Scripted] | Sequence[Scripted]
Failures = Callable[[Request, int], RequestError | None]
"""`failures(request, asked)`, where `asked` counts earlier sendings of that request."""

EVERYTHING: frozenset[Ability] = frozenset(get_args(Ability))
UNLIKELY = -100.0
"""The log-likelihood of a continuation that the script does not give."""


class _Scripted(Model):
    """Base of the remote and the local scripted model.

    `asked` counts the requests that came. `record` keeps them in `requests` (off by default, so
    that memory stays flat). It carries every option, which the script may read. `version` names the
    behaviour of a function, so that its answers may be stored across runs; without one, every model
    made from a function is a model of its own.
    """

    carries = EVERY_OPTION

    def __init__(
        self,
        answers: Answers,
        *,
        name: str = "scripted",
        abilities: Iterable[Ability] = EVERYTHING,
        failures: Failures | None = None,
        latency: float | Callable[[Request], float] = 0.0,
        version: str | None = None,
        record: bool = False,
        pacing: Pacing | None = None,
    ) -> None:
        self.name = name
        self.abilities = frozenset(abilities)
        script = _script_identity(answers, version)
        if script is not None:
            self.fingerprint = fingerprint_of({"scripted": name, "script": script})
        self.latency = latency
        self.asked = 0
        self.requests: list[Request] | None = [] if record else None
        self._script = _script(answers)
        self._failures = failures
        self._times_asked: dict[Request, int] = {}
        self._set_pacing(pacing)

    def describe(self) -> dict[str, Any]:
        """Describe the model, with the note that it is not a language model."""
        return {
            **super().describe(),
            "note": "a scripted stand-in, not a language model",
        }

    def _set_pacing(self, pacing: Pacing | None) -> None:
        """Ignore the pacing: a local model has none."""

    def _seconds(self, request: Request) -> float:
        return self.latency(request) if callable(self.latency) else self.latency

    def _begin(self, request: Request) -> Scripted | Awaitable[Scripted]:
        self.asked += 1
        if self.requests is not None:
            self.requests.append(request)
        if self._failures is not None:
            before = self._times_asked.get(request, 0)
            self._times_asked[request] = before + 1
            failure = self._failures(request, before)
            if failure is not None:
                raise failure
        if request.ability not in self.abilities:
            raise Rejected(f"'{self.name}' cannot do '{request.ability}'.")
        return self._script(request)


class ScriptedModel(_Scripted, RemoteModel):
    """A model that follows a script, for tests and baselines; to the engine it is a remote model.

    An answer in the script is a Response, a text, a mapping with `text` and `tool_calls`, a number
    or numbers, or a RequestError::

        ScriptedModel("Paris")                                        # always the same
        ScriptedModel({"2 + 2 =": "4"})                               # by prompt
        ScriptedModel(lambda request: "Paris")                        # by a function
        ScriptedModel(["first", RateLimited("slow down"), "third"])   # one after another

    Args:
        answers: the script.
        name: the model's name.
        abilities: the kinds of request that it answers.
        failures: `failures(request, n)` returns an error to raise, or None; n counts earlier
            sendings of the request.
        latency: seconds per request, or a function from the request to seconds.
        version: names the behaviour of a function, so that its responses may be stored across runs.
        record: whether to keep all requests in `.requests`.
        pacing: how its requests are paced.
    """

    async def answer(self, request: Request) -> Response:
        """Follow the script once."""
        seconds = self._seconds(request)
        if seconds > 0:
            await asyncio.sleep(seconds)
        scripted = self._begin(request)
        if inspect.isawaitable(scripted):
            scripted = await scripted
        return _as_response(scripted, request, seconds)

    def _set_pacing(self, pacing: Pacing | None) -> None:
        self.pacing = pacing or Pacing(start_concurrency=Pacing().max_concurrency)


class ScriptedLocalModel(_Scripted, LocalModel):
    """A scripted model that is called like a local one.

    It is called in batches, in a worker thread, with load and unload. `latency` is the seconds per
    request, spent sleeping; `loads` counts how often it was loaded.
    """

    heavy = False
    loads = 0
    loaded = False

    def load(self) -> None:
        """Count the loading."""
        self.loads += 1
        self.loaded = True

    def unload(self) -> None:
        """Note that the model is unloaded."""
        self.loaded = False

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Follow the script for each request, in order."""
        for index, request in enumerate(requests):
            seconds = self._seconds(request)
            if seconds > 0:
                time.sleep(seconds)
            try:
                scripted = self._begin(request)
                if inspect.isawaitable(scripted):
                    raise ModelError(
                        "A local scripted model cannot wait for a coroutine."
                    )
                answer: Response | Failure = _as_response(scripted, request, seconds)
            except RequestError as error:
                answer = error.as_failure()
            yield index, answer


def _as_response(scripted: Any, request: Request, seconds: float) -> Response:
    """Make the Response to this kind of request from what the script gives."""
    if isinstance(scripted, Response):
        return scripted
    if isinstance(scripted, RequestError):
        raise scripted
    if isinstance(scripted, Mapping) and isinstance(request, Generate):
        return replace(reply_to(request, scripted, "The script"), latency=seconds)
    if isinstance(scripted, str):
        if isinstance(request, Generate):
            return Response(scripted, finish_reason="stop", latency=seconds)
        if isinstance(request, LogLikelihood):
            certain = request.continuation.strip() == scripted.strip()
            log_likelihood = 0.0 if certain else UNLIKELY
            return Response(
                log_likelihood=log_likelihood,
                is_greedy=certain,
                tokens_scored=1,
                latency=seconds,
            )
    elif isinstance(scripted, int | float) and not isinstance(scripted, bool):
        if isinstance(request, LogLikelihood | RollingLogLikelihood):
            return Response(
                log_likelihood=float(scripted), tokens_scored=1, latency=seconds
            )
        if isinstance(request, Reward | Classify | Embed):
            return Response(values=(float(scripted),), latency=seconds)
    elif isinstance(scripted, Sequence) and isinstance(
        request, Reward | Classify | Embed
    ):
        return Response(
            values=tuple(float(number) for number in scripted), latency=seconds
        )
    raise ModelError(
        f"The script gave {type(scripted).__name__} for a {type(request).__name__}"
        " request."
    )


def _script(answers: Answers) -> Script:
    if isinstance(answers, str):
        return lambda request: answers
    if isinstance(answers, Mapping):
        return partial(_by_prompt, answers)
    if isinstance(answers, Sequence):
        return partial(_next_answer, iter(answers))
    if callable(answers):
        return answers
    raise ConfigurationError(
        "A scripted model needs a text, a function of the request, a mapping or a"
        " sequence of answers."
    )


def _by_prompt(answers: Mapping[Any, Scripted], request: Request) -> Scripted:
    """Look up an answer by prompt.

    The key is the text, the messages, or the last message's text; (context, continuation) for
    likelihoods.
    """
    if isinstance(request, Generate):
        keys: list[Any] = [request.prompt, last_text(request.prompt)]
    elif isinstance(request, LogLikelihood):
        forms = (request.context, last_text(request.context))
        keys = [*((form, request.continuation) for form in forms), *forms]
    elif isinstance(request, Reward):
        keys = [(request.prompt, request.response), request.response]
    elif isinstance(request, Classify):
        keys = [(request.premise, request.hypothesis), request.hypothesis]
    else:
        keys = [request.text]
    for key in keys:
        if key in answers:
            return answers[key]
    raise Rejected(f"The script has no answer for {keys[0]!r:.200}.")


def _next_answer(waiting: Iterator[Scripted], _: Request) -> Scripted:
    """Return the next answer of the script, in the order of the requests."""
    for answer in waiting:
        return answer
    raise Rejected("The script has ended: all its answers were given.")


def _script_identity(answers: Answers, version: str | None) -> Any:
    if version is not None:
        return version
    if isinstance(answers, str):
        return answers
    if isinstance(answers, Mapping):
        return sorted((repr(key), repr(value)) for key, value in answers.items())
    # What a function or the order of the requests would answer cannot be known, so nothing is
    # shared.
    return None


def last_text(prompt: Prompt) -> str:
    """Return the prompt's text, or its last message's."""
    return prompt if isinstance(prompt, str) else prompt[-1].text


def _hash(key: bytes, request: Request) -> Scripted:
    """Answer by a pure function of the request: digits for a text, a number for a likelihood.

    It guesses at random, and always the same.
    """
    number = int.from_bytes(
        blake2b(_words(request), digest_size=8, key=key).digest(), "big"
    )
    share = number / 2**64
    if isinstance(request, Generate):
        return f"{number:020d}"
    if isinstance(request, LogLikelihood):
        return Response(
            log_likelihood=-20.0 * share - 0.01, is_greedy=share < 0.1, tokens_scored=1
        )
    if isinstance(request, RollingLogLikelihood):
        tokens = max(1, len(request.text.split()))
        return Response(
            log_likelihood=-tokens * (1.0 + 9.0 * share), tokens_scored=tokens
        )
    return [share] if isinstance(request, Reward) else [share, 1.0 - share]


def _words(request: Request) -> bytes:
    if isinstance(request, Generate):
        identity: tuple[Any, ...] = (
            prompt_payload(request.prompt),
            request.draw,
            request.seed,
        )
    elif isinstance(request, LogLikelihood):
        identity = (prompt_payload(request.context), request.continuation)
    else:
        identity = tuple(request.payload().items())
    return repr(identity).encode("utf-8", "surrogatepass")


_TAGGED = re.compile(
    r"<(article|passage|document|text)\b[^>]*>\s*(.*?)\s*</\1>",
    re.DOTALL | re.IGNORECASE,
)
_LABELLED = re.compile(
    r"^(article|passage|document|text):[ \t]*\n\s*(.*?)\s*(?=^[^\W\d_]\w{2,20}:|\Z)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|(?<=[。！？।])\s*")


def lead(prompt: Prompt, sentences: int) -> str:
    """Return the beginning of the text in a prompt: lead-3, the plain baseline of summarisation.

    All it says is in the text. The text stands in <article>, <passage>, <document> or <text> tags
    or under such a word as a label ("Article:" on a line of its own, up to the next label); else it
    is the prompt's longest paragraph.
    """
    text = (
        prompt if isinstance(prompt, str) else "\n\n".join(turn.text for turn in prompt)
    )
    named = [match[2] for form in (_TAGGED, _LABELLED) for match in form.finditer(text)]
    passage = max(named or re.split(r"\n\s*\n", text), key=len)
    return " ".join(
        sentence.strip() for sentence in _SENTENCE.split(passage)[:sentences]
    ).strip()


_TEXT: frozenset[Ability] = frozenset(("generate", "chat"))
_LIKELIHOODS: frozenset[Ability] = frozenset(("log-likelihood", "rolling"))


def scripted_model(
    name: str,
    *,
    text: str = "",
    seed: int = 0,
    sentences: int = 3,
    latency: float = 0.0,
    local: bool = False,
) -> _Scripted:
    """Open `scripted/echo`, `constant`, `hash` or `lead`; docs/models.md describes them.

    Args:
        name: the script.
        text: the answer of `constant`.
        seed: the seed of `hash`.
        sentences: the number of sentences of `lead`.
        latency: seconds per request.
        local: whether it is called like a local model, in batches.
    """
    version = f"1 text={text!s} seed={seed}"
    if name == "lead":
        if (
            not isinstance(sentences, int)
            or isinstance(sentences, bool)
            or sentences < 1
        ):
            raise ConfigurationError(
                "The argument sentences must be a whole number above 0, not"
                f" {sentences!r}."
            )
        version += f" sentences={sentences}"
    scripts: dict[str, tuple[Callable[[Any], Scripted], frozenset[Ability]]] = {
        "constant": (
            lambda request: str(text) if isinstance(request, Generate) else -1.0,
            _TEXT | _LIKELIHOODS,
        ),
        "echo": (lambda request: last_text(request.prompt), _TEXT),
        "hash": (partial(_hash, str(seed).encode()), EVERYTHING),
        "lead": (lambda request: lead(request.prompt, sentences), _TEXT),
    }
    check_known("scripted model", [name], scripts)
    script, abilities = scripts[name]
    model_class = ScriptedLocalModel if local else ScriptedModel
    return model_class(
        script,
        name=f"scripted/{name}",
        abilities=abilities,
        latency=latency,
        version=version,
    )
