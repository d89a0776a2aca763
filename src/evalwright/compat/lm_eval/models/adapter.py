"""Model classes of lm-evaluation-harness as our local models `lm/<name>` and `lm_eval/<backend>`.

All waiting requests of one kind go to the class in one call, and each result is checked. A method
that is missing, or only raises NotImplementedError, is an ability that the model lacks, known
before any request is made.
"""

from __future__ import annotations

import gc
import inspect
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import Any

from evalwright import (
    Failure,
    LocalModel,
    LogLikelihood,
    Message,
    Model,
    Response,
    RollingLogLikelihood,
    __version__,
)
from evalwright.compat.lm_eval.api import registry
from evalwright.compat.lm_eval.api.instance import Instance, OutputType
from evalwright.compat.lm_eval.api.model import argument_string
from evalwright.compat.lm_eval.models.clients import CLIENTS
from evalwright.compat.lm_eval.models.model_classes import (
    METHODS,
    SPEED_ONLY_ARGUMENTS,
    check_arguments,
    check_sources,
    find_abilities,
    identify_content,
    is_transformers,
    own_method,
)
from evalwright.compat.lm_eval.models.request_settings import settings_for_class
from evalwright.extend import (
    ConfigurationError,
    MissingExtra,
    ModelError,
    Prompt,
    Request,
    RequestError,
    UnknownName,
    digested_arguments,
    fingerprint_of,
    masked_arguments,
    stopped_response,
)

_END = object()
ENTRY_POINTS = "evalwright.lm"
"""The entry point group of model classes: name = "module:Class"."""


class LMAdapter(LocalModel):
    """Runs a model class as a model of ours.

    The class is instantiated in `load`, in the worker thread. Generation settings of an
    lm-evaluation-harness task reach it unchanged, and its text is not cut: there, too, the class
    decides where to stop. In all other requests a text ends before the first stop string.

    Args:
        model_class: the class.
        arguments: what it is created with.
        chat: whether it takes messages; None: whether it defines `apply_chat_template`.
        fingerprint: names its answers in the store, together with the arguments. Without it nothing
            is
            shared between runs, except for the package's transformers backend.
        release: the release of the package that the class comes from.
        instance: a model object that was created already.
    """

    carries = frozenset(("generation_arguments",))

    def __init__(
        self,
        name: str,
        model_class: type,
        arguments: Mapping[str, Any],
        *,
        chat: bool | None = None,
        fingerprint: str | None = None,
        release: str = "",
        instance: Any = None,
    ) -> None:
        self.name = name
        self._class = model_class
        self._arguments = dict(arguments)
        self._instance = instance
        self._release = release
        self._lm: Any = None
        self._loaded_facts: dict[str, Any] = {}
        self.abilities = find_abilities(model_class, chat)
        if not self.abilities - {"chat"}:
            raise ConfigurationError(
                f"The model class {model_class.__name__} has no abilities: it defines none of"
                f" {', '.join(registry.METHODS)}, or they only raise"
                " NotImplementedError."
            )
        if instance is None:
            check_arguments(name, model_class, self._arguments)
        code_fingerprint = fingerprint or getattr(model_class, "fingerprint", None)
        fingerprint_text = (
            str(code_fingerprint)
            if isinstance(code_fingerprint, str | int) and code_fingerprint
            else ""
        )
        self._content_identity = {} if fingerprint_text else self._content()
        identity_source = fingerprint_text or self._content_identity
        if identity_source:  # else it has that of an unknown model, which Model gives
            self.fingerprint = fingerprint_of(self._identity(fingerprint_text))

    def _content(self) -> dict[str, Any]:
        """Identify weights, tokenizer and code by content; empty if that is not possible."""
        content = (
            identify_content(self._arguments)
            if self._release and is_transformers(self._class)
            else None
        )
        return {} if content is None else {"release": self._release, "content": content}

    def _identity(self, named: str) -> dict[str, Any]:
        arguments = digested_arguments(self._arguments)
        if not named:
            named_elsewhere = {
                *SPEED_ONLY_ARGUMENTS,
                *self._content_identity["content"],
                "revision",
            }
            arguments = {
                key: value
                for key, value in arguments.items()
                if key not in named_elsewhere
            }
        return {
            "lm": named or self._content_identity,
            "arguments": arguments,
            "chat": "chat" in self.abilities,
        }

    def describe(self) -> dict[str, Any]:
        """Describe the model, its class and its arguments; secrets are masked."""
        name = f"{self._class.__module__}.{self._class.__qualname__}"
        return {
            **super().describe(),
            "class": name,
            "arguments": masked_arguments(self._arguments),
            **self._content_identity,
            **self._loaded_facts,
        }

    def check(self) -> None:
        """Raise if a file that the transformers backend needs does not exist."""
        if self._instance is None and is_transformers(self._class):
            check_sources(self._arguments)

    def load(self) -> None:
        """Create the model. Raises ModelError with the class's own message if that fails."""
        if self._lm is not None:
            return
        try:
            self._lm = self._create_instance()
        except RequestError:
            raise
        except Exception as error:
            raise ModelError(
                f"The model '{self.name}' cannot be created: {_error_text(error)}"
            ) from error
        if self._content_identity and self._content() != self._content_identity:
            self.unload()
            raise ModelError(
                f"The files of '{self.name}' were changed after the run had begun. Run"
                " the same command again."
            )
        self._loaded_facts = {
            **(_describe_template(self._lm) if "chat" in self.abilities else {}),
            **_describe_weights(self._lm),
        }

    def rendered(self, messages: Sequence[Message]) -> str:
        """Render messages with the class's own chat template."""
        self.load()
        return str(self._text(tuple(messages)))

    def unload(self) -> None:
        """Drop the model."""
        self._lm = None
        gc.collect()
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available():
            torch.cuda.empty_cache()

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Call the model's methods, once for each kind of waiting request."""
        if self._lm is None:
            self.load()
        for request_type, (method, _) in METHODS.items():
            places = [
                index
                for index, request in enumerate(requests)
                if isinstance(request, request_type)
            ]
            if places:
                yield from self._ask(
                    method, [requests[index] for index in places], places
                )
        for index, request in enumerate(requests):
            if type(request) not in METHODS:
                yield (
                    index,
                    ModelError(
                        f"'{self.name}' cannot do '{request.ability}'."
                    ).as_failure(),
                )

    def _create_instance(self) -> Any:
        if self._instance is not None:
            return self._instance
        model_class: Any = self._class
        if own_method(model_class, "create_from_arg_obj"):
            return model_class.create_from_arg_obj(dict(self._arguments))
        if own_method(model_class, "create_from_arg_string"):
            return model_class.create_from_arg_string(argument_string(self._arguments))
        return model_class(**self._arguments)

    def _ask(
        self, method: OutputType, requests: Sequence[Any], places: Sequence[int]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Call one method with all its requests and check each result as it comes."""
        answerable: list[tuple[int, Any]] = []
        instances: list[Instance] = []
        for index, request in zip(places, requests, strict=True):
            number = len(instances)
            try:
                arguments = self._arguments_of(request)
            except Exception as error:
                yield index, self._failure("apply_chat_template", error)
            else:
                instances.append(
                    Instance(method, {}, arguments, number, ("evalwright", number, 1))
                )
                answerable.append((index, request))
        if not instances:
            return
        answered = 0
        try:
            responses = getattr(self._lm, method)(instances)
            for (index, request), response in zip(
                answerable,
                self._check_results(method, len(answerable), responses),
                strict=True,
            ):
                answered += 1
                try:
                    answer: Response | Failure = self._response(
                        method, request, response
                    )
                except RequestError as error:
                    answer = error.as_failure()
                yield index, answer
        except Exception as error:
            failure = self._failure(method, error)
            for index, _ in answerable[answered:]:
                yield index, failure

    def _check_results(
        self, method: str, n_requests: int, responses: Any
    ) -> Iterator[Any]:
        """Yield as many results as requests. Raises ModelError if the number differs."""
        if isinstance(responses, str | bytes | Mapping) or not isinstance(
            responses, Iterable
        ):
            raise self._model_error(
                method,
                "must give a list with one result per request, not"
                f" {type(responses).__name__}",
            )
        if isinstance(responses, Sequence) and len(responses) != n_requests:
            mismatch = (
                f"gave {len(responses)} results for {n_requests} requests, so they cannot be"
                " matched to requests"
            )
            raise self._model_error(method, mismatch)
        remaining = iter(responses)
        for count in range(n_requests):
            if (response := next(remaining, _END)) is _END:
                raise self._model_error(
                    method, f"gave only {count} results for {n_requests} requests"
                )
            yield response

    def _model_error(self, method: str, problem: str) -> ModelError:
        return ModelError(f"`{method}` of '{self.name}' {problem}.")

    def _failure(self, method: str, error: Exception) -> Failure:
        if isinstance(error, NotImplementedError):
            lacks = f"'{self.name}' does not implement `{method}` for this request"
            error = ModelError(f"{lacks}: {_error_text(error)}")
        elif not isinstance(error, RequestError):
            error = ModelError(
                f"`{method}` of '{self.name}' failed: {_error_text(error)}"
            )
        return error.as_failure()

    def _arguments_of(self, request: Any) -> tuple[Any, ...]:
        if isinstance(request, LogLikelihood):
            return self._text(request.context), request.continuation
        if isinstance(request, RollingLogLikelihood):
            return (request.text,)
        return self._text(request.prompt), settings_for_class(request)

    def _text(self, prompt: Prompt) -> Any:
        """Render messages with the model's own template.

        The result is passed on unchanged: some clients take more than text.
        """
        if isinstance(prompt, str):
            return prompt
        opening = prompt[-1].role != "assistant"
        return self._lm.apply_chat_template(
            [turn.as_dict() for turn in prompt], add_generation_prompt=opening
        )

    def _response(self, method: OutputType, request: Any, output: Any) -> Response:
        if method == "generate_until":
            if not isinstance(output, str):
                raise self._model_error(
                    method, f"must give text, not {type(output).__name__}"
                )
            return stopped_response(output, request.stop)
        greedy = None
        number_like = output
        if method == "loglikelihood":
            if not isinstance(output, tuple | list) or len(output) != 2:
                raise self._model_error(
                    method,
                    "must give pairs (log-probability, is greedy), not"
                    f" {_shorten(output)}",
                )
            number_like, greedy = output
            if not (type(greedy).__name__ in ("bool_", "bool") or greedy in (0, 1)):
                raise self._model_error(
                    method,
                    f"must say true or false for 'is greedy', not {_shorten(greedy)}",
                )
            greedy = bool(greedy)
        elif isinstance(output, tuple | list) and output:
            # Some classes give the number in a tuple, as the guide's text says, others bare, as its
            # code does.
            number_like = output[0]
        try:
            number = (
                float(number_like)
                if not isinstance(number_like, str | bool)
                else math.nan
            )
        except (TypeError, ValueError):
            number = math.nan
        if math.isnan(number) or number > 1e-4:
            raise self._model_error(
                method,
                f"must give a natural log-probability, at most 0, not {_shorten(number_like)}",
            )
        scored = self._count_scored_tokens(request)
        return Response(
            log_likelihood=min(number, 0.0), is_greedy=greedy, tokens_scored=scored
        )

    def _count_scored_tokens(self, request: Any) -> int | None:
        """The number of tokens scored, if the class has a tokenizer."""
        encode = getattr(self._lm, "tok_encode", None)
        if not callable(encode):
            return None
        with suppress(Exception):  # the class's own code
            if isinstance(request, RollingLogLikelihood):
                return len(encode(request.text, add_special_tokens=False))
            pair = getattr(self._lm, "_encode_pair", None)
            if callable(pair) and isinstance(request.context, str) and request.context:
                return len(pair(request.context, request.continuation)[1])
            return len(encode(request.continuation, add_special_tokens=False))
        return None


def _describe_template(lm: Any) -> dict[str, Any]:
    """The source of a class's chat template and its special tokens; empty if unknown."""
    with suppress(Exception):  # the class's own code
        source = lm.chat_template(True)
        tokens = dict(getattr(getattr(lm, "tokenizer", None), "special_tokens_map", {}))
        if isinstance(source, str) and source:
            variables = {
                str(role): text
                for role, text in tokens.items()
                if isinstance(text, str)
            }
            return {"template": {"source": source, "variables": variables}}
    return {}


def _describe_weights(lm: Any) -> dict[str, Any]:
    """Describe a class's weights and tokenizer, if it has them."""
    facts: dict[str, Any] = {}
    with suppress(Exception):  # the class's own code
        if tokenizer := getattr(lm, "tokenizer", None):
            facts |= {
                "special_tokens": _special_tokens(tokenizer),
                "context_length": int(lm.max_length),
            }
        if weights := getattr(lm, "_model", None):
            dtype = str(weights.dtype).removeprefix("torch.")
            facts |= {"parameters": int(weights.num_parameters()), "dtype": dtype}
    return facts


def _special_tokens(tokenizer: Any) -> dict[str, list[Any]]:
    """The special tokens of a tokenizer, each as its text and its number."""
    tokens: dict[str, list[Any]] = {}
    for role in ("bos_token", "eos_token", "pad_token", "unk_token"):
        token_id = getattr(tokenizer, f"{role}_id", None)
        if token_id is not None:
            tokens[role] = [str(getattr(tokenizer, role, None)), int(token_id)]
    return tokens


def lm_model(
    name: str,
    *,
    chat: bool | None = None,
    fingerprint: str | None = None,
    **arguments: Any,
) -> Model:
    """Create `lm/<name>`: a registered class, or one of the entry point group `evalwright.lm`.

    `lm/<client>/<model>` is a model behind a server; see `client_bodies`.
    """
    client, _, served_name = name.partition("/")
    if served_name and client in CLIENTS:
        if chat is not None or fingerprint is not None:
            raise ConfigurationError(
                f"'lm/{name}' takes neither chat nor fingerprint: leave them out."
            )
        from evalwright.compat.lm_eval.models.client_bodies import served_model

        return served_model(client, served_name, **arguments)
    model_class = registry.MODEL_REGISTRY.get(name)
    release = ""
    points = {
        point.name: point for point in reversed(list(entry_points(group=ENTRY_POINTS)))
    }
    if model_class is None and name in points:
        model_class = points[name].load()
        if not inspect.isclass(model_class):
            raise ConfigurationError(
                f"The entry point '{name}' of {ENTRY_POINTS} is not a model class:"
                f" {points[name].value}."
            )
    if model_class is None and name in registry.BUILT_IN:
        release = f"evalwright {__version__}"
        try:
            model_class = registry.get_model(name)
        except ImportError as error:
            raise MissingExtra(
                f"The model 'lm/{name}'", "hf", error.name or "transformers"
            ) from None
    if model_class is None:
        known_names = sorted({*registry.MODEL_REGISTRY, *points})
        listed = (
            f"Known: {', '.join(known_names)}."
            if known_names
            else "None is registered."
        )
        raise UnknownName(
            "model class",
            name,
            known_names,
            f"{listed} Name the file that registers it with --plugin.",
        )
    return LMAdapter(
        f"lm/{name}",
        model_class,
        arguments,
        chat=chat,
        fingerprint=fingerprint,
        release=release,
    )


def lm_eval_model(
    name: str, *, chat: bool = False, fingerprint: str | None = None, **arguments: Any
) -> LMAdapter:
    """Create `lm_eval/<backend>`: a model class of the installed package lm_eval.

    chat: apply the model's chat template; like the package, only on request.
    """
    try:
        release = version("lm_eval")
        package_registry = import_module("lm_eval.api.registry")
    except (ImportError, PackageNotFoundError):
        raise ConfigurationError(
            f"The model 'lm_eval/{name}' needs the package lm_eval, which is not"
            " installed. Install it with: pip install lm_eval"
        ) from None
    try:
        model_class = package_registry.get_model(name)
    except (KeyError, ValueError):
        known_names = sorted(map(str, package_registry.model_registry.keys()))
        raise UnknownName("backend of lm_eval", name, known_names) from None
    except ImportError as error:
        raise ConfigurationError(
            f"The backend '{name}' of lm_eval cannot be imported: {_error_text(error)}"
        ) from None
    return LMAdapter(
        f"lm_eval/{name}",
        model_class,
        arguments,
        chat=chat,
        fingerprint=fingerprint,
        release=release,
    )


def _error_text(error: Exception) -> str:
    text = (str(error).strip().splitlines() or [""])[0].rstrip(".")
    return f"{type(error).__name__}: {text}." if text else f"{type(error).__name__}."


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
