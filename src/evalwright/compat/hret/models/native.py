"""HRET's own back ends by their names, each a model of this package asked with HRET's parameters.

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

import asyncio
import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from evalwright.compat.hret import settings
from evalwright.compat.hret.asking import Native, SampleDoor
from evalwright.compat.hret.models.base import (
    DEFAULT_TRIGGER,
    BaseJudge,
    BaseModel,
    BaseRewardModel,
    load_model,
    register_model,
)
from evalwright.compat.hret.rows import input_of
from evalwright.compat.hret.scaling import DEFAULT_PARSER, parser_of
from evalwright.core.errors import RequestFailed
from evalwright.core.private import home_folder
from evalwright.core.requests import LogLikelihood, Reward
from evalwright.core.responses import Response
from evalwright.core.samples import Sample
from evalwright.engine.engine import Engine
from evalwright.engine.store import Store
from evalwright.evaluation.running import run_blocking
from evalwright.models.registry import open_model
from evalwright.strategies.generate import Sampling

_DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
_RESULT = re.compile(r"\[RESULT\]\s*(\d+(?:\.\d+)?)")
_PENALTIES = ("frequency_penalty", "presence_penalty")


class NativeModel:
    """A back end with HRET's parameters."""

    REQUIRED: tuple[str, ...] = ()
    DEFAULTS: ClassVar[Mapping[str, Any]] = {}
    role = "target"

    def __init__(self, **params: Any) -> None:
        missing = [name for name in self.REQUIRED if not params.get(name)]
        if missing:
            raise ValueError(
                f"{' and '.join(self.REQUIRED)} {'is' if len(self.REQUIRED) == 1 else 'are'} required"
            )
        unknown = sorted(set(params) - {*self.REQUIRED, *self.DEFAULTS})
        if unknown and settings.scoring() == "corrected":
            raise ValueError(
                f"{type(self).__name__} has no parameter '{unknown[0]}'. It takes: {', '.join(self._known())}."
            )
        self.params: dict[str, Any] = {**self.DEFAULTS, **params}

    def _known(self) -> list[str]:
        return sorted({*self.REQUIRED, *self.DEFAULTS})

    def native(self, *, published: bool) -> Native:
        """The model and how it is asked."""
        raise NotImplementedError

    def _ask_all(
        self, make: Callable[[SampleDoor, Mapping[str, Any]], Any], rows: Sequence[Mapping[str, Any]]
    ) -> list[Any]:
        """One call for each row, through an engine of its own with the store of this folder."""
        native = self.native(published=settings.scoring() == "published")

        async def work() -> list[Any]:
            with Store.open(home_folder()) as store:
                async with Engine(store) as engine:
                    door = engine.door({self.role: native.model})
                    doors = [
                        SampleDoor(door, Sample(str(place)), dict(row), {self.role: native})
                        for place, row in enumerate(rows)
                    ]
                    return await asyncio.gather(
                        *(make(one, row) for one, row in zip(doors, rows, strict=True))
                    )

        found: list[Any] = run_blocking(work)
        return found

    def _answered(self, inputs: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
        sampling = self.native(published=settings.scoring() == "published").sampling
        until = options.get("until") or ()
        more: dict[str, Any] = {"stop": (until,) if isinstance(until, str) else tuple(until)}
        if options.get("max_new_tokens") is not None:
            more["max_tokens"] = options["max_new_tokens"]
        if options.get("return_logits"):
            more["top_logprobs"] = 0

        async def one(door: SampleDoor, row: Mapping[str, Any]) -> dict[str, Any]:
            try:
                response: Response = await door(
                    self.role, replace(sampling, **more).request(input_of(row), 0)
                )
            except RequestFailed as error:
                return {**row, "prediction": None, "error": error.failure.message, "finish_reason": "error"}
            score = {"judge_score": response.values[0]} if self.role == "judge" and response.values else {}
            reason = {"finish_reason": response.finish_reason} if response.finish_reason else {}
            values = [token.log_prob for token in response.tokens]
            tokens = [token.text for token in response.tokens]
            logits = (
                {"sum_log_prob": sum(values), "token_log_probs": values, "tokens": tokens} if values else {}
            )
            added = {**door.found, **({"logits": logits} if logits else {})}
            return {**row, **added, "prediction": response.text, **reason, **score}

        return self._ask_all(one, inputs)


class _Generator(NativeModel, BaseModel):
    """A back end that generates."""

    def generate_batch(
        self, inputs: list[dict[str, Any]], return_logits: bool = False, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """The inputs with `prediction`."""
        return self._answered(inputs, return_logits=return_logits, **kwargs)

    def _cot(self) -> dict[str, Any]:
        given = self.params
        parser = parser_of(given["cot_parser"] or DEFAULT_PARSER)
        return {"cot": bool(given["cot"]), "trigger": given["cot_trigger"], "parser": parser}


class _Judge(NativeModel, BaseJudge):
    """A back end that judges."""

    role = "judge"

    def judge_batch(self, inputs: list[dict[str, Any]], **kwargs: Any) -> list[dict[str, Any]]:
        """The inputs with the judge's replies as `prediction`."""
        return self._answered(inputs, **kwargs)


_COT: Mapping[str, Any] = {"cot": False, "cot_trigger": DEFAULT_TRIGGER, "cot_parser": None}
"""What every back end that generates takes. A parser that is None is HRET's own one."""


def _hf_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    device = given.get("device")
    arguments: dict[str, Any] = dict(given.get("model_kwargs") or {})
    if device == "map":
        arguments["device_map"] = "auto"
    elif device:
        arguments["device"] = device
    dtype = given.get("dtype", "auto")
    if dtype != "auto":
        arguments["dtype"] = _DTYPES.get(dtype, dtype)
    if given.get("tokenizer_id_or_path"):
        arguments["tokenizer"] = given["tokenizer_id_or_path"]
    if isinstance(given.get("batch_size"), int) and given["batch_size"] > 1:
        arguments["batch_size"] = given["batch_size"]
    return arguments


def _drawn(given: Mapping[str, Any]) -> dict[str, Any]:
    """Temperature and top_p: sampling at temperature 0 is greedy."""
    if not given["do_sample"] or not given["temperature"]:
        return {"temperature": 0.0}
    return {
        "temperature": float(given["temperature"]),
        "top_p": None if given["top_p"] == 1 else given["top_p"],
    }


@register_model("openai")
class OpenAIModel(_Generator):
    """Any server that speaks OpenAI's chat or completions interface. A key is needed for OpenAI itself alone."""

    REQUIRED = ("model_name", "api_base")
    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        **_COT, "api_key": None, "system_message": None, "use_chat_api": True, "is_vision_model": False, "batch_size": 8,
        "max_retries": 3, "timeout": 30.0, "max_tokens": None, "temperature": None, "top_p": None, "frequency_penalty": None,
        "presence_penalty": None, "seed": None, "stop": None, "logprobs": None, "extra_body": None, "max_new_tokens": None,
    }  # fmt: skip

    def native(self, *, published: bool) -> Native:
        """Published: what HRET sends, which is neither a seed nor the chain of thought, nor the settings of one call."""
        given = self.params
        own = {} if published else {"seed": given["seed"], "stop": _texts(given["stop"])}
        most = given["max_tokens"] if published else given["max_tokens"] or given["max_new_tokens"]
        return Native(
            _remote(given, chat=given["use_chat_api"], published=published),
            Sampling(max_tokens=most, temperature=given["temperature"], top_p=given["top_p"], **own),
            one_call=not published,
            tells_reason=True,
            chat=given["use_chat_api"],
            system=given["system_message"] or "",
            vision=bool(given["is_vision_model"]) or not published,
            lenient=published,
            **({} if published else self._cot()),
        )


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())


def _remote(given: Mapping[str, Any], *, chat: bool = True, published: bool = True) -> Any:
    """The model at an address with or without the interface's path, and with or without a key. published: send nothing to find out
    whether it gives log-likelihoods, which HRET does not ask for."""
    base = str(given["api_base"]).rstrip("/")
    base = base.removesuffix("/completions").removesuffix("/chat") if base.endswith("/completions") else base
    body = {name: given[name] for name in _PENALTIES if given.get(name) is not None}
    arguments: dict[str, Any] = {
        "base_url": base,
        "interface": "chat" if chat else "completions",
        "echo": False if published else None,
        "extra_body": {**body, **(given.get("extra_body") or {})} or None,
        "timeout": float(given.get("timeout") or 300.0),
        "max_attempts": int(given.get("max_retries") or 0) + 1,
        **_key(given.get("api_key")),
    }
    return open_model(
        f"openai/{given['model_name']}", {key: one for key, one in arguments.items() if one is not None}
    )


def _key(secret: str | None) -> dict[str, str]:
    """A key that was given, by the name of a variable of this process: names are recorded, values are not."""
    if not secret:
        return {}
    name = f"EVALWRIGHT_HRET_{hashlib.sha256(secret.encode()).hexdigest()[:8].upper()}_KEY"
    os.environ[name] = secret
    return {"api_key_env": name}


@register_model("openai_judge")
class OpenAIJudge(_Judge):
    """A judge behind OpenAI's chat interface."""

    REQUIRED = ("model_name",)
    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "api_key": None, "api_base": None, "temperature": 0.0, "max_tokens": 1024, "top_p": 1.0, "frequency_penalty": 0.0,
        "presence_penalty": 0.0, "batch_size": 10, "timeout": 60.0, "max_retries": 2, "extra_body": None,
    }  # fmt: skip

    def native(self, *, published: bool) -> Native:
        """Published: every field with HRET's default; else those of them that say something."""
        given = dict(self.params)
        given["api_base"] = given["api_base"] or os.environ.get(
            "OPENAI_API_BASE", "https://api.openai.com/v1"
        )
        given["api_key"] = given["api_key"] or os.environ.get("OPENAI_API_KEY")
        if not published:
            given |= {name: given[name] or None for name in _PENALTIES}
        top_p = given["top_p"] if published or given["top_p"] != 1 else None
        return Native(_remote(given), Sampling(given["max_tokens"], given["temperature"], top_p), chat=True)


@register_model("multi")
class MultiModel:
    """Up to one model for each role, each {"name", "params"}."""

    def __init__(
        self,
        generate_model: Mapping[str, Any] | None = None,
        judge_model: Mapping[str, Any] | None = None,
        reward_model: Mapping[str, Any] | None = None,
        cot_parser: Any = None,
        **kwargs: Any,
    ) -> None:
        # HRET drops the parser here: with a judge or a reward model there was none.
        passed = {} if settings.scoring() == "published" or cot_parser is None else {"cot_parser": cot_parser}
        self.generate_model = _part(generate_model, "generate_model", "generate_batch", "BaseModel", passed)
        self.judge_model = _part(judge_model, "judge_model", "judge_batch", "BaseJudge", {})
        self.reward_model = _part(reward_model, "reward_model", "score_batch", "BaseRewardModel", {})

    def generate_batch(
        self, inputs: list[dict[str, Any]], return_logits: bool = False, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """The replies of the model that generates; the inputs where there is none."""
        model = self.generate_model
        return (
            inputs
            if model is None
            else list(model.generate_batch(inputs, return_logits=return_logits, **kwargs))
        )

    def judge_batch(self, inputs: list[dict[str, Any]], **kwargs: Any) -> list[dict[str, Any]]:
        """The judge's replies; the inputs where there is none."""
        return inputs if self.judge_model is None else list(self.judge_model.judge_batch(inputs, **kwargs))

    def score_batch(self, inputs: list[dict[str, Any]], **kwargs: Any) -> list[dict[str, Any]]:
        """The rewards; the inputs where there is no reward model."""
        return inputs if self.reward_model is None else list(self.reward_model.score_batch(inputs, **kwargs))


def _part(
    given: Mapping[str, Any] | None, key: str, method: str, base: str, passed: Mapping[str, Any]
) -> Any:
    if given is None:
        return None
    loaded = load_model(str(given.get("name")), **{**(given.get("params") or {}), **passed})
    if not callable(getattr(loaded, method, None)):
        raise ValueError(f"Loaded {key} is not a {base}: {type(loaded)}")
    return loaded


@register_model("huggingface")
class HuggingFaceModel(_Generator):
    """A model of transformers, from the hub or a folder."""

    REQUIRED = ("model_name_or_path",)
    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        **_COT, "tokenizer_id_or_path": None, "dtype": "auto", "max_new_tokens": 512, "max_input_tokens": None, "temperature": 0.0,
        "top_p": 1.0, "do_sample": True, "stop_token": None, "device": None, "batch_size": 1, "is_vision_model": False,
        "model_kwargs": None,
    }  # fmt: skip
    likelihood = False
    """Whether the evaluation is one by likelihood: then rows with options are answered so, whatever the scoring."""

    def native(self, *, published: bool) -> Native:
        """Published: the prompt as it is, and a row with options by their likelihood; else with the model's chat template."""
        given = self.params
        model = open_model(f"hf/{given['model_name_or_path']}", _hf_arguments(given))
        stop = () if published else _texts(given["stop_token"])
        return Native(
            model,
            Sampling(max_tokens=given["max_new_tokens"], stop=stop, **_drawn(given)),
            chat=not published and "chat" in model.abilities,
            by_options=published or self.likelihood,
            vision=not published,
            **self._cot(),
        )

    def _score_option(self, prompt: str, option: str) -> float:
        async def one(door: SampleDoor, row: Mapping[str, Any]) -> float:
            response = await door(self.role, LogLikelihood(prompt, f" {option}"))
            return response.log_likelihood or 0.0

        return float(self._ask_all(one, [{}])[0])


@register_model("huggingface_judge")
class HuggingFaceJudge(_Judge):
    """A judge of transformers, asked for feedback and a number from 1 to 5."""

    REQUIRED = ("model_name_or_path",)
    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "device": "cpu", "max_new_tokens": 64, "temperature": 1.0, "top_p": 0.95, "do_sample": True, "batch_size": 8, "dtype": "auto",
        "model_kwargs": None, "tokenizer_id_or_path": None,
    }  # fmt: skip

    def native(self, *, published: bool) -> Native:
        """Published: the bare reply; what HRET makes of the prompt and the reply together is the scorer's."""
        given = self.params
        model = open_model(f"hf/{given['model_name_or_path']}", _hf_arguments(given))
        return Native(
            model,
            Sampling(max_tokens=given["max_new_tokens"], **_drawn(given)),
            chat=not published and "chat" in model.abilities,
            read=None if published else _verdict,
        )


def _verdict(prompt: str, response: Response) -> Response:
    found = _RESULT.search(response.text)
    return replace(response, values=(float(found[1]),)) if found else response


@register_model("huggingface_reward")
class HuggingFaceReward(NativeModel, BaseRewardModel):
    """The mean log-likelihood of a reply's tokens under a language model."""

    REQUIRED = ("model_name_or_path",)
    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "device": "cpu",
        "dtype": "auto",
        "model_kwargs": None,
        "tokenizer_id_or_path": None,
    }
    role = "reward"

    def native(self, *, published: bool) -> Native:
        """Published: an empty reply has the reward 0, above every log-probability."""
        name = self.params["model_name_or_path"]
        model = open_model(f"likelihood/hf/{name}", _hf_arguments(self.params))
        return Native(model, empty_reward=0.0 if published else None)

    def score_batch(self, inputs: list[dict[str, Any]], **kwargs: Any) -> list[dict[str, Any]]:
        """The inputs with `reward`."""

        async def one(door: SampleDoor, row: Mapping[str, Any]) -> dict[str, Any]:
            response = await door(self.role, Reward(input_of(row), str(row.get("prediction") or "")))
            return {**row, "reward": response.values[0]}

        return self._ask_all(one, inputs)


@register_model("litellm")
class LiteLLMBackend(_Generator):
    """Any provider of the library litellm."""

    REQUIRED = ("provider", "model_name")
    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        **_COT, "api_key": None, "api_base": None, "api_version": None, "aws_access_key_id": None, "aws_secret_access_key": None,
        "aws_region_name": None, "anthropic_api_key": None, "max_new_tokens": 128, "temperature": 0.7, "batch_size": 8,
        "is_vision_model": False, "max_retries": 3, "timeout": None, "top_p": None,
    }  # fmt: skip

    def native(self, *, published: bool) -> Native:
        """The provider and the model in the library's own words."""
        given = self.params
        sampling = Sampling(given["max_new_tokens"], given["temperature"], given["top_p"])
        vision = bool(given["is_vision_model"]) or not published
        return Native(
            _by_litellm(given), sampling, chat=True, vision=vision, lenient=published, **self._cot()
        )


@register_model("litellm_judge")
class LiteLLMJudge(_Judge):
    """A judge by way of the library litellm."""

    REQUIRED = ("provider", "model_name")
    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "api_key": None, "api_base": None, "api_version": None, "max_new_tokens": 64, "temperature": 1.0, "batch_size": 8,
        "retry_max": 3, "retry_base_delay": 1.0, "top_p": None, "timeout": None,
    }  # fmt: skip

    def native(self, *, published: bool) -> Native:
        """As the back end that generates."""
        given = self.params
        return Native(
            _by_litellm(given),
            Sampling(given["max_new_tokens"], given["temperature"], given["top_p"]),
            chat=True,
        )


def _by_litellm(given: Mapping[str, Any]) -> Any:
    provider, name = str(given["provider"]).lower(), str(given["model_name"])
    for variable in ("aws_access_key_id", "aws_secret_access_key", "aws_region_name", "anthropic_api_key"):
        if given.get(variable):
            os.environ[variable.upper()] = str(given[variable])
    extra = {"api_version": given["api_version"]} if given.get("api_version") else None
    arguments = {
        "base_url": given.get("api_base"),
        "extra": extra,
        "max_attempts": int(given.get("retry_max", given.get("max_retries", 3))) + 1,
        "timeout": given.get("timeout"),
        **_key(given.get("api_key")),
    }
    whole = name if name.startswith(f"{provider}/") else f"{provider}/{name}"
    return open_model(f"litellm/{whole}", {key: one for key, one in arguments.items() if one is not None})


@register_model("vllm")
class VLLMModel(_Generator):
    """A vLLM server on this machine (start it with `vllm serve`); the engine's own settings are the server's."""

    REQUIRED = ("model_name_or_path",)
    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        **_COT, "temperature": 0.0, "top_p": 1.0, "max_tokens": 1024, "max_new_tokens": None, "stop": None, "dtype": "auto",
        "tensor_parallel_size": 1, "gpu_memory_utilization": 0.9, "is_vision_model": False, "api_base": None, "batch_size": None,
    }  # fmt: skip

    def native(self, *, published: bool) -> Native:
        """Published: the prompt as it is; else messages, for the model's own chat template."""
        given = self.params
        arguments = {"interface": "completions" if published else "chat"}
        if given["api_base"]:
            arguments["base_url"] = given["api_base"]
        most = given["max_new_tokens"] or given["max_tokens"]
        top_p = None if given["top_p"] == 1 else given["top_p"]
        return Native(
            open_model(f"vllm/{given['model_name_or_path']}", arguments),
            Sampling(most, given["temperature"], top_p, _texts(given["stop"])),
            chat=not published,
            vision=not published,
            **self._cot(),
        )
