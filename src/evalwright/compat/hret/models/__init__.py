"""HRET's own back ends by their names, each a model of this package asked with HRET's parameters
(`published.toml` has their defaults).

| name | here |
|---|---|
| huggingface, huggingface_judge | `hf/...` |
| vllm | `vllm/...`, a server on this machine |
| openai, openai_judge | `openai/...`, any server that speaks its interface |
| litellm, litellm_judge | `litellm/...` |
| huggingface_reward | `likelihood/hf/...` |
| multi | one of each role |
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from evalwright import RequestFailed, Response, Reward, Sample, open_model
from evalwright.compat.hret import settings
from evalwright.compat.hret.asking import (
    Native,
    SampleDoor,
    asked_alone,
    asked_for,
    option_log_probs,
    replied,
)
from evalwright.compat.hret.models.base import (
    MODEL_REGISTRY,
    BaseJudge,
    BaseModel,
    BaseRewardModel,
    load_model,
    register_model,
)
from evalwright.compat.hret.published import texts
from evalwright.compat.hret.scaling import DEFAULT_PARSER, parser_of
from evalwright.compat.hret.settings import Given, Rows, check_parameters
from evalwright.extend import Sampling

__all__ = [
    "MODEL_REGISTRY",
    "BaseJudge",
    "BaseModel",
    "BaseRewardModel",
    "HuggingFaceJudge",
    "HuggingFaceModel",
    "HuggingFaceReward",
    "LiteLLMBackend",
    "LiteLLMJudge",
    "MultiModel",
    "OpenAIJudge",
    "OpenAIModel",
    "VLLMModel",
    "load_model",
    "register_model",
]

_DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
_RESULT = re.compile(r"\[RESULT\]\s*(\d+(?:\.\d+)?)")
_PENALTIES = ("frequency_penalty", "presence_penalty")


class NativeModel:
    """A back end with HRET's parameters, which a table has by its name."""

    name = ""
    role = "target"

    def __init__(self, **params: Any) -> None:
        table = texts()["models"][self.name]
        required = table["required"]
        if not all(params.get(name) for name in required):
            raise ValueError(
                f"{' and '.join(required)} {'is' if len(required) == 1 else 'are'}"
                " required"
            )
        defaults = {**dict.fromkeys((*required, *table["none"])), **table["defaults"]}
        if not settings.is_published():
            check_parameters(f"the model '{self.name}'", params, defaults)
        self.params: dict[str, Any] = {**defaults, **params}

    def native(self, *, published: bool) -> Native:
        """The model and how it is asked."""
        raise NotImplementedError

    def _ask_all(
        self,
        make: Callable[[SampleDoor, Sample], Any],
        rows: Sequence[Given],
        native: Native | None = None,
    ) -> list[Any]:
        return asked_alone(
            {self.role: native or self.native(published=settings.is_published())},
            rows,
            make,
        )

    def _answered(self, inputs: Rows, **options: Any) -> Rows:
        native = self.native(published=settings.is_published())

        async def ask_one(door: SampleDoor, sample: Sample) -> dict[str, Any]:
            request = replace(native.sampling, **asked_for(options)).request(
                sample.input, 0
            )
            try:
                response = await door(self.role, request)
            except RequestFailed as error:
                lost = {
                    "prediction": None,
                    "error": error.failure.message,
                    "finish_reason": "error",
                }
                return {**sample.row, **lost}
            score = (
                {"judge_score": response.values[0]}
                if self.role == "judge" and response.values
                else {}
            )
            reason = (
                {"finish_reason": response.finish_reason}
                if response.finish_reason
                else {}
            )
            return {
                **replied({**sample.row, **door.found}, response),
                **reason,
                **score,
            }

        return self._ask_all(ask_one, inputs, native)


class _Generator(NativeModel, BaseModel):
    """A back end that generates."""

    def generate_batch(
        self, inputs: Rows, return_logits: bool = False, **kwargs: Any
    ) -> Rows:
        """The inputs with `prediction`."""
        return self._answered(inputs, return_logits=return_logits, **kwargs)

    def _cot(self, published: bool) -> dict[str, Any]:
        """The chain of thought. A parser that is None is HRET's own one."""
        params = self.params
        parser = parser_of(params["cot_parser"] or DEFAULT_PARSER, published=published)
        return {
            "cot": bool(params["cot"]),
            "trigger": params["cot_trigger"],
            "parser": parser,
        }


class _Judge(NativeModel, BaseJudge):
    """A back end that judges."""

    role = "judge"

    def judge_batch(self, inputs: Rows, **kwargs: Any) -> Rows:
        """The inputs with the judge's replies as `prediction`."""
        return self._answered(inputs, **kwargs)


@MODEL_REGISTRY.register_own("huggingface")
class HuggingFaceModel(_Generator):
    """A model of transformers, from the hub or a folder."""

    likelihood = False
    """Whether the evaluation is one by likelihood: then rows with options are answered so, whatever
    the scoring.
    """

    def native(self, *, published: bool) -> Native:
        """Published: the prompt as it is, and a row with options by their likelihood; else with the
        model's chat template.
        """
        params = self.params
        model = _transformer("hf", params)
        stop = () if published else _texts(params["stop_token"])
        return Native(
            model,
            _drawn(params, stop),
            chat=not published and "chat" in model.abilities,
            by_options=published or self.likelihood,
            bare_options=published,
            gives_logits=published,
            vision=not published,
            **self._cot(published),
        )

    def _score_option(self, prompt: str, option: str) -> float:
        async def score_one(door: SampleDoor, sample: Sample) -> list[float]:
            return await option_log_probs(door, self.role, prompt, [option])

        return float(self._ask_all(score_one, [{}])[0][0])


@MODEL_REGISTRY.register_own("huggingface_judge")
class HuggingFaceJudge(_Judge):
    """A judge of transformers, asked for feedback and a number from 1 to 5."""

    def native(self, *, published: bool) -> Native:
        """Published: the bare reply; what HRET makes of the prompt and the reply together is the
        scorer's.
        """
        model = _transformer("hf", self.params)
        chat = not published and "chat" in model.abilities
        return Native(
            model, _drawn(self.params), chat=chat, read=None if published else _verdict
        )


def _verdict(response: Response) -> Response:
    match = _RESULT.search(response.text)
    return replace(response, values=(float(match[1]),)) if match else response


@MODEL_REGISTRY.register_own("huggingface_reward")
class HuggingFaceReward(NativeModel, BaseRewardModel):
    """The mean log-likelihood of a reply's tokens under a language model."""

    role = "reward"

    def native(self, *, published: bool) -> Native:
        """Published: an empty reply has the reward 0, above every log-probability."""
        return Native(
            _transformer("likelihood/hf", self.params),
            empty_reward=0.0 if published else None,
        )

    def score_batch(self, inputs: Rows, **kwargs: Any) -> Rows:
        """The inputs with `reward`."""

        async def reward_one(door: SampleDoor, sample: Sample) -> dict[str, Any]:
            response = await door(
                self.role, Reward(sample.input, str(sample.row.get("prediction") or ""))
            )
            return {**sample.row, "reward": response.values[0]}

        return self._ask_all(reward_one, inputs)


@MODEL_REGISTRY.register_own("openai")
class OpenAIModel(_Generator):
    """Any server that speaks OpenAI's chat or completions interface.

    A key is needed for OpenAI itself alone.
    """

    def native(self, *, published: bool) -> Native:
        """Published: what HRET sends, which is neither a seed nor the chain of thought, nor the
        settings of one call.
        """
        params = self.params
        extra_settings: dict[str, Any] = {}
        if not published:
            logs = 0 if params["logprobs"] else None
            extra_settings = {
                "seed": params["seed"],
                "stop": _texts(params["stop"]),
                "top_logprobs": logs,
            }
        most = (
            params["max_tokens"]
            if published
            else params["max_tokens"] or params["max_new_tokens"]
        )
        return Native(
            _remote(params, chat=params["use_chat_api"], published=published),
            Sampling(
                max_tokens=most,
                temperature=params["temperature"],
                top_p=params["top_p"],
                **extra_settings,
            ),
            one_call=not published,
            tells_reason=True,
            chat=params["use_chat_api"],
            system=params["system_message"] or "",
            vision=bool(params["is_vision_model"]) or not published,
            lenient=published,
            **({} if published else self._cot(published)),
        )


@MODEL_REGISTRY.register_own("openai_judge")
class OpenAIJudge(_Judge):
    """A judge behind OpenAI's chat interface."""

    def native(self, *, published: bool) -> Native:
        """Published: every field with HRET's default; else those of them that say something."""
        params = dict(self.params)
        public = os.environ.get("OPENAI_API_BASE", "https://api.openai.com/v1")
        params["api_base"] = params["api_base"] or public
        params["api_key"] = params["api_key"] or os.environ.get("OPENAI_API_KEY")
        if not published:
            params |= {name: params[name] or None for name in _PENALTIES}
        top_p = params["top_p"] if published or params["top_p"] != 1 else None
        return Native(
            _remote(params),
            Sampling(params["max_tokens"], params["temperature"], top_p),
            chat=True,
        )


@MODEL_REGISTRY.register_own("litellm")
class LiteLLMBackend(_Generator):
    """Any provider of the library litellm."""

    def native(self, *, published: bool) -> Native:
        """The provider and the model in the library's own words."""
        vision = bool(self.params["is_vision_model"]) or not published
        return replace(
            _by_litellm(self.params),
            vision=vision,
            lenient=published,
            **self._cot(published),
        )


@MODEL_REGISTRY.register_own("litellm_judge")
class LiteLLMJudge(_Judge):
    """A judge by way of the library litellm."""

    def native(self, *, published: bool) -> Native:
        """As the back end that generates."""
        return _by_litellm(self.params)


@MODEL_REGISTRY.register_own("vllm")
class VLLMModel(_Generator):
    """A vLLM server on this machine (start it with `vllm serve`); the engine's own settings are the
    server's.
    """

    def native(self, *, published: bool) -> Native:
        """Published: the prompt as it is; else messages, for the model's own chat template."""
        params = self.params
        arguments = {
            "interface": "completions" if published else "chat",
            "base_url": params["api_base"],
        }
        most = params["max_new_tokens"] or params["max_tokens"]
        top_p = None if params["top_p"] == 1 else params["top_p"]
        return Native(
            _opened(f"vllm/{params['model_name_or_path']}", arguments),
            Sampling(most, params["temperature"], top_p, _texts(params["stop"])),
            chat=not published,
            vision=not published,
            **self._cot(published),
        )


@register_model("multi")
class MultiModel:
    """Up to one model for each role, each {"name", "params"}."""

    def __init__(
        self,
        generate_model: Given | None = None,
        judge_model: Given | None = None,
        reward_model: Given | None = None,
        cot_parser: Any = None,
        **kwargs: Any,
    ) -> None:
        published = settings.is_published()
        if not published:
            check_parameters(
                "the model 'multi'",
                kwargs,
                ("generate_model", "judge_model", "reward_model"),
            )
        # HRET drops the parser here: with a judge or a reward model there was none.
        passed = {} if published or cot_parser is None else {"cot_parser": cot_parser}
        self.generate_model = _part(
            generate_model, "generate_model", "generate_batch", passed
        )
        self.judge_model = _part(judge_model, "judge_model", "judge_batch", {})
        self.reward_model = _part(reward_model, "reward_model", "score_batch", {})

    def generate_batch(
        self, inputs: Rows, return_logits: bool = False, **kwargs: Any
    ) -> Rows:
        """The replies of the model that generates; the inputs where there is none."""
        model = self.generate_model
        arguments = {"return_logits": return_logits, **kwargs}
        return (
            inputs if model is None else list(model.generate_batch(inputs, **arguments))
        )

    def judge_batch(self, inputs: Rows, **kwargs: Any) -> Rows:
        """The judge's replies; the inputs where there is none."""
        return (
            inputs
            if self.judge_model is None
            else list(self.judge_model.judge_batch(inputs, **kwargs))
        )

    def score_batch(self, inputs: Rows, **kwargs: Any) -> Rows:
        """The inputs with rewards; as they are where there is no reward model."""
        return (
            inputs
            if self.reward_model is None
            else list(self.reward_model.score_batch(inputs, **kwargs))
        )


def _part(config: Given | None, role: str, method: str, passed: Given) -> Any:
    if config is None:
        return None
    loaded = load_model(
        str(config.get("name")), **{**(config.get("params") or {}), **passed}
    )
    if not callable(getattr(loaded, method, None)):
        raise ValueError(
            f"'{config.get('name')}' cannot be the {role}: it has no method {method}."
        )
    return loaded


# -- how they are opened ---------------------------------------------------------------


def _opened(name: str, arguments: Given) -> Any:
    return open_model(
        name,
        {key: argument for key, argument in arguments.items() if argument is not None},
    )


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())


def _transformer(kind: str, params: Given) -> Any:
    device = params["device"]
    dtype = params["dtype"]
    size = params.get("batch_size")
    arguments = {
        "device" if device != "map" else "device_map": (
            device if device != "map" else "auto"
        ),
        "dtype": None if dtype == "auto" else _DTYPES.get(dtype, dtype),
        "tokenizer": params["tokenizer_id_or_path"],
        "batch_size": size if isinstance(size, int) and size > 1 else None,
    }
    named = {
        key: argument for key, argument in arguments.items() if argument is not None
    }
    return _opened(
        f"{kind}/{params['model_name_or_path']}",
        {**(params["model_kwargs"] or {}), **named},
    )


def _drawn(params: Given, stop: tuple[str, ...] = ()) -> Sampling:
    """Sampling at temperature 0 is greedy."""
    if not params["do_sample"] or not params["temperature"]:
        return Sampling(params["max_new_tokens"], 0.0, stop=stop)
    top_p = None if params["top_p"] == 1 else params["top_p"]
    return Sampling(params["max_new_tokens"], float(params["temperature"]), top_p, stop)


def _remote(params: Given, *, chat: bool = True, published: bool = True) -> Any:
    """The model at an address with or without the interface's path, and with or without a key.
    published: send nothing to find out whether it gives log-likelihoods, which HRET does not ask
    for.
    """
    base = str(params["api_base"]).rstrip("/")
    base = (
        base.removesuffix("/completions").removesuffix("/chat")
        if base.endswith("/completions")
        else base
    )
    body = {name: params[name] for name in _PENALTIES if params.get(name) is not None}
    arguments: dict[str, Any] = {
        "base_url": base,
        "interface": "chat" if chat else "completions",
        "echo": False if published else None,
        "extra_body": {**body, **(params.get("extra_body") or {})} or None,
        "timeout": float(params.get("timeout") or 300.0),
        "max_attempts": int(params.get("max_retries") or 0) + 1,
        **_key(params.get("api_key")),
    }
    return _opened(f"openai/{params['model_name']}", arguments)


def _by_litellm(params: Given) -> Native:
    provider = str(params["provider"]).lower()
    name = str(params["model_name"])
    for variable in (
        "aws_access_key_id",
        "aws_secret_access_key",
        "aws_region_name",
        "anthropic_api_key",
    ):
        if params.get(variable):
            os.environ[variable.upper()] = str(params[variable])
    arguments = {
        "base_url": params["api_base"],
        "extra": (
            {
                name: params[name]
                for name in ("api_version", *_PENALTIES)
                if params[name]
            }
            or None
        ),
        "max_attempts": int(params.get("retry_max", params.get("max_retries", 3))) + 1,
        "timeout": params["timeout"],
        **_key(params["api_key"]),
    }
    model = _opened(
        f"litellm/{name if name.startswith(f'{provider}/') else f'{provider}/{name}'}",
        arguments,
    )
    # HRET passes what it does not know on to the library, where `max_tokens` takes the place of
    # `max_new_tokens`.
    sampling = Sampling(
        params["max_tokens"] or params["max_new_tokens"],
        params["temperature"],
        params["top_p"],
        _texts(params["stop"]),
        params["seed"],
    )
    return Native(model, sampling, chat=True)


def _key(secret: str | None) -> dict[str, str]:
    """A key that was given, by the name of a variable of this process: names are recorded, values
    are not.
    """
    if not secret:
        return {}
    name = (
        f"EVALWRIGHT_HRET_{hashlib.sha256(secret.encode()).hexdigest()[:8].upper()}_KEY"
    )
    os.environ[name] = secret
    return {"api_key_env": name}
