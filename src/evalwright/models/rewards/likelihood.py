"""Rewards from a language model's log-likelihoods.

They are `likelihood/<provider>/<name>` and `verdict/<provider>/<name>`, with that model's own
arguments.

    likelihood/hf/gpt2              the mean log-probability of the reply's tokens after the prompt
    verdict/hf/Qwen/Qwen3-0.6B      log P(" Yes") - log P(" No") after a question about the reply

The model underneath may be any that gives log-likelihoods, local or remote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalwright.core.errors import (
    ConfigurationError,
    Failure,
    ModelError,
    RequestError,
    UnknownName,
)
from evalwright.core.requests import (
    Ability,
    LogLikelihood,
    Message,
    Prompt,
    Request,
    Reward,
)
from evalwright.core.responses import Response, Usage
from evalwright.models import arguments
from evalwright.models.model_interface import (
    LocalModel,
    Model,
    RemoteModel,
    fingerprint_of,
    unknown_fingerprint,
)
from evalwright.models.rewards.prompts import needed_reference, plain_prompt

TEMPLATE = (
    "A question or task, and a reply to"
    " it.\n\n[Task]\n{prompt}\n\n[Reply]\n{response}\n\nIs the reply correct and"
    " helpful? Answer Yes or No.\nAnswer:"
)
_FIELD = re.compile(r"\{(prompt|response|reference)\}")


class MeanLikelihood:
    """Computes a reward as the mean log-probability of the reply's tokens.

    `facts` is what decides the reward, beside the model; `argument_names` are its own arguments.
    """

    facts: Mapping[str, Any] = {"reward": "mean log-likelihood"}
    argument_names: tuple[str, ...] = ()

    def requests(self, request: Reward, *, chat: bool) -> list[LogLikelihood]:
        """Return the requests to the model; `chat` says whether it takes messages.

        Raises:
            ModelError: the reply is empty, so there is no mean that could be compared.
        """
        if not request.response:
            raise ModelError(
                "An empty reply has no tokens, so it has no mean log-likelihood."
            )
        prompt: Prompt = request.prompt if chat else plain_prompt(request.prompt)
        return [LogLikelihood(prompt, request.response)]

    def value(self, responses: Sequence[Response], name: str) -> float:
        """Compute the reward from the responses.

        Raises:
            ModelError: they do not give one.
        """
        (response,) = responses
        if response.log_likelihood is None or not response.tokens_scored:
            raise ModelError(
                f"'{name}' does not say how many tokens it scored, so there is no mean"
                " log-likelihood."
            )
        return response.log_likelihood / response.tokens_scored


class Verdict(MeanLikelihood):
    """Computes the log-odds of one verdict against another after a question.

    All slots in braces are filled at once, so that no text can fill in another.
    """

    argument_names = ("template", "yes", "no")

    def __init__(self, template: str | None, yes: str | None, no: str | None) -> None:
        self.template = arguments.text("template", template) or TEMPLATE
        self.yes = arguments.text("yes", yes) or " Yes"
        self.no = arguments.text("no", no) or " No"
        if "{response}" not in self.template:
            raise ConfigurationError(
                "The template of a verdict must have {response} where the reply stands."
            )
        if self.yes == self.no:
            raise ConfigurationError(
                f"yes and no must be two verdicts, not '{self.yes}' for both."
            )
        self.facts = {
            "reward": "verdict",
            "template": self.template,
            "yes": self.yes,
            "no": self.no,
        }

    def requests(self, request: Reward, *, chat: bool) -> list[LogLikelihood]:
        """Return two requests: both verdicts after the same question."""
        texts = {"prompt": plain_prompt(request.prompt), "response": request.response}
        if "{reference}" in self.template:
            texts["reference"] = needed_reference(request, "verdict")
        question = _FIELD.sub(lambda match: texts[match[1]], self.template)
        context: Prompt = (Message("user", question),) if chat else question
        return [
            LogLikelihood(context, verdict.strip() if chat else verdict)
            for verdict in (self.yes, self.no)
        ]

    def value(self, responses: Sequence[Response], name: str) -> float:
        """Return the difference of the two log-likelihoods."""
        yes, no = (response.log_likelihood for response in responses)
        if yes is None or no is None:
            raise ModelError(f"'{name}' gave no log-likelihood.")
        return yes - no


def likelihood_model(name: str, **options: Any) -> Model:
    """Open a model whose reward is the mean log-likelihood of a reply's tokens.

    The arguments are those of the model underneath.
    """
    return _open_inner_model("likelihood", name, options, MeanLikelihood())


def verdict_model(
    name: str,
    *,
    template: str | None = None,
    yes: str | None = None,
    no: str | None = None,
    **options: Any,
) -> Model:
    """Open a model whose reward is the log-odds of a verdict.

    Args:
        name: the model underneath.
        template: the question, with {prompt}, {response} and, if wanted, {reference}.
        yes, no: the verdicts.
        options: the arguments of the model underneath.
    """
    return _open_inner_model("verdict", name, options, Verdict(template, yes, no))


def _open_inner_model(
    provider: str, name: str, options: dict[str, Any], way: MeanLikelihood
) -> Model:
    from evalwright.models.registry import open_model

    revision = options.pop("revision", None)
    try:
        inner = open_model(name if revision is None else f"{name}@{revision}", options)
    except UnknownName as error:
        if error.name not in options or not way.argument_names:
            raise
        allowed = (*way.argument_names, *error.suggestions)
        hint = f"Known: {', '.join(way.argument_names)}, and those of '{name}'."
        raise UnknownName(
            f"argument of '{provider}' models", error.name, allowed, hint
        ) from None
    if "log-likelihood" not in inner.abilities:
        raise ConfigurationError(
            f"'{provider}/{name}' needs a model with log-likelihoods, and"
            f" '{inner.name}' gives none. Reward models with a head are reward/..."
        )
    if isinstance(inner, LocalModel):
        return _Local(provider, inner, way)
    assert isinstance(inner, RemoteModel)
    return _Remote(provider, inner, way)


def _combine_responses(
    way: MeanLikelihood, responses: Sequence[Response], name: str
) -> Response:
    usage = sum((response.usage for response in responses), Usage())
    costs = [response.cost for response in responses if response.cost is not None]
    return Response(
        values=(way.value(responses, name),),
        usage=usage,
        cost=sum(costs) if len(costs) == len(responses) else None,
        latency=sum(response.latency for response in responses),
        model=responses[0].model,
        rate_limits=responses[-1].rate_limits,
    )


class _Reward(Model):
    """Base of local and remote rewards: the model underneath, and the reward of its answers."""

    def __init__(self, provider: str, inner: Any, way: MeanLikelihood) -> None:
        self.name = f"{provider}/{inner.name}"
        self.abilities: frozenset[Ability] = frozenset({"reward"})
        self._inner = inner
        self._way = way
        facts = {"backend": provider, "model": inner.fingerprint, **way.facts}
        self.fingerprint = (
            fingerprint_of(facts) if inner.is_known else unknown_fingerprint()
        )

    def describe(self) -> dict[str, Any]:
        """Describe the model underneath, and how the reward is computed."""
        return {**self._inner.describe(), **super().describe(), **self._way.facts}

    def check(self) -> None:
        """Check the model underneath, which must turn out to give log-likelihoods."""
        self._inner.check()
        if "log-likelihood" not in self._inner.abilities:
            raise ConfigurationError(
                f"'{self._inner.name}' turned out to give no log-likelihoods, so it"
                " gives no rewards."
            )

    def _inner_requests(self, request: Request) -> list[LogLikelihood]:
        if not isinstance(request, Reward):
            raise ModelError(f"'{self.name}' cannot do '{request.ability}'.")
        chat = "chat" in self._inner.abilities and not isinstance(request.prompt, str)
        return self._way.requests(request, chat=chat)


class _Local(_Reward, LocalModel):
    def __init__(self, provider: str, inner: LocalModel, way: MeanLikelihood) -> None:
        super().__init__(provider, inner, way)
        self.heavy = inner.heavy

    def load(self) -> None:
        self._inner.load()

    def unload(self) -> None:
        self._inner.unload()

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Yield a reward when its last log-likelihood is there.

        A prompt that several replies share is computed once, as the model does it.
        """
        owner: list[tuple[int, int]] = []
        inner_requests: list[Request] = []
        answers_by_index: dict[int, list[Response | Failure | None]] = {}
        for index, request in enumerate(requests):
            try:
                reward_requests = self._inner_requests(request)
            except ModelError as error:
                yield index, error.as_failure()
                continue
            answers_by_index[index] = [None] * len(reward_requests)
            owner += [(index, position) for position in range(len(reward_requests))]
            inner_requests += reward_requests
        for number, answer in (
            self._inner.answer_batch(inner_requests) if inner_requests else ()
        ):
            index, position = owner[number]
            answers_by_index[index][position] = answer
            if None not in answers_by_index[index]:
                yield index, self._combine(answers_by_index.pop(index))

    def _combine(
        self, answers: Sequence[Response | Failure | None]
    ) -> Response | Failure:
        failed = [answer for answer in answers if isinstance(answer, Failure)]
        if failed:
            return failed[0]
        try:
            return _combine_responses(
                self._way,
                [answer for answer in answers if isinstance(answer, Response)],
                self.name,
            )
        except ModelError as error:
            return error.as_failure()


class _Remote(_Reward, RemoteModel):
    def __init__(self, provider: str, inner: RemoteModel, way: MeanLikelihood) -> None:
        super().__init__(provider, inner, way)
        self.pacing = inner.pacing
        self.price = inner.price

    async def answer(self, request: Request) -> Response:
        """Send the requests for the reward, one after another.

        What was answered before a failure is billed.
        """
        responses: list[Response] = []
        for inner_request in self._inner_requests(request):
            try:
                responses.append(await self._inner.answer(inner_request))
            except RequestError as error:
                if responses:
                    error.usage = sum(
                        (response.usage for response in responses),
                        error.usage or Usage(),
                    )
                raise
        return _combine_responses(self._way, responses, self.name)

    async def close(self) -> None:
        """Close the model underneath."""
        await self._inner.close()
