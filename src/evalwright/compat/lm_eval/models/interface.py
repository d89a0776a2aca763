"""The model interface of lm-evaluation-harness's New Model Guide: three methods over lists of `Instance`, and a name.

A class written after that guide derives from `LM` (or `TemplateLM`) here instead of there, and runs as `lm/<name>`. Import these
names from `evalwright.compat.lm_eval`; the adapter that makes such a class a model of ours is `models.lm_adapter`.
"""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal, TypeVar

from evalwright.bounded import from_json
from evalwright.core.errors import ConfigurationError

RequestType = Literal["loglikelihood", "loglikelihood_rolling", "generate_until", "multiple_choice"]
METHODS = ("loglikelihood", "loglikelihood_rolling", "generate_until")
"""What a model is asked through. A class has those that it can do."""

Class = TypeVar("Class", bound=type)
Made = TypeVar("Made", bound="LM")


@dataclass
class Instance:
    """One request. `args` is what is asked:

    loglikelihood: (context, continuation). loglikelihood_rolling: (text,). generate_until: (prompt, settings), where settings
    has `until` (a list of stop strings), `do_sample`, `temperature`, and, where the task sets them, `max_gen_toks`, `top_p`, `seed`.
    idx: its place among the requests of one call. metadata: (task, document, repeats); the engine asks for content, not for
    documents, so `doc` is empty.
    """

    request_type: RequestType
    doc: dict[str, Any]
    arguments: tuple[Any, ...]
    idx: int
    metadata: tuple[str | None, int | None, int | None] = (None, None, None)
    resps: list[Any] = field(default_factory=list)
    filtered_resps: dict[str, Any] = field(default_factory=dict)
    task_name: str | None = field(init=False)
    doc_id: int | None = field(init=False)
    repeats: int | None = field(init=False)

    def __post_init__(self) -> None:
        self.task_name, self.doc_id, self.repeats = self.metadata

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments, always as a tuple."""
        return self.arguments if isinstance(self.arguments, tuple) else (self.arguments,)


class CacheHook:
    """Where classes written for the harness report finished requests. The engine stores every answer by itself."""

    def add_partial(self, attr: str, req: Any, res: Any) -> None:
        """Nothing to do."""


class LM(ABC):  # noqa: B024 - a method that is left out is an ability that the model has not
    """Base of model classes. Define the methods that the model can do; one that is left out is never asked for.

    Each gets a list of instances and gives as many results in the same order: a list, or a generator, whose results count as soon
    as they come.
    """

    def __init__(self) -> None:
        self._rank = 0
        self._world_size = 1
        self._device: Any = None
        self.cache_hook: Any = CacheHook()

    def loglikelihood(self, requests: list[Instance]) -> Iterable[tuple[float, bool]]:
        """(log-probability of the continuation after the context, whether greedy decoding gives it) for each request."""
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Instance]) -> Iterable[float]:
        """The log-probability of each whole text, in windows where it is longer than the model's context."""
        raise NotImplementedError

    def generate_until(self, requests: list[Instance]) -> Iterable[str]:
        """What the model writes after each prompt, up to the first stop string."""
        raise NotImplementedError

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """The text of a conversation. A class that defines it takes messages.

        add_generation_prompt: end with the opening of the model's turn; False where the last message is a prefill.
        """
        raise NotImplementedError

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """The source of the chat template, where there is one."""
        return ""

    @property
    def tokenizer_name(self) -> str:
        """The tokenizer's name."""
        raise NotImplementedError

    @classmethod
    def create_from_arg_string(
        cls: type[Made], arg_string: str, additional_config: Mapping[str, Any] | None = None
    ) -> Made:
        """A model from "key=value,key=value"; values that read as JSON are what they read as."""
        return cls.create_from_arg_obj(parse_arguments(arg_string), additional_config)

    @classmethod
    def create_from_arg_obj(
        cls: type[Made], arg_dict: Mapping[str, Any], additional_config: Mapping[str, Any] | None = None
    ) -> Made:
        """A model from a mapping of arguments; those of `additional_config` that are None are left out."""
        more = {key: value for key, value in (additional_config or {}).items() if value is not None}
        return cls(**arg_dict, **more)

    @property
    def device(self) -> Any:
        """Where the model is."""
        return self._device

    @property
    def rank(self) -> int:
        """Always 0: the engine runs one process."""
        return self._rank

    @property
    def world_size(self) -> int:
        """Always 1."""
        return self._world_size

    def set_cache_hook(self, cache_hook: Any) -> None:
        """Take a hook for finished requests."""
        self.cache_hook = cache_hook


class TemplateLM(LM):
    """An LM with a tokenizer: it defines `tok_encode`, `eot_token_id` and `_loglikelihood_tokens`, and gets `loglikelihood`."""

    tokenizer: Any = None
    backend = "causal"

    @property
    def eot_token_id(self) -> int:
        """The token that ends a text."""
        raise NotImplementedError

    @property
    def prefix_token_id(self) -> int:
        """What the first token of a text is predicted from."""
        return self.eot_token_id

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **options: Any) -> list[int]:
        """The tokens of a text."""
        raise NotImplementedError

    def _loglikelihood_tokens(
        self, requests: list[tuple[tuple[str, str], list[int], list[int]]], **options: Any
    ) -> Iterable[tuple[float, bool]]:
        """As `loglikelihood`, of ((context, continuation), context's tokens, continuation's tokens)."""
        raise NotImplementedError

    def loglikelihood(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> Iterable[tuple[float, bool]]:
        """Tokenise each pair and score the tokens."""
        encoded = [(pair, *self._encode_pair(*pair)) for pair in (request.args for request in requests)]
        return self._loglikelihood_tokens(encoded, disable_tqdm=disable_tqdm)

    def _encode_pair(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
        """The tokens of a context and of what follows it; neither is empty.

        White space at the context's end goes to the continuation. A token that spans the join belongs to the continuation. Without
        a context the prefix token stands for it, unless the text begins with that token itself.
        """
        bare = context.rstrip()
        continuation = context[len(bare) :] + continuation
        if not bare:
            tokens = list(self.tok_encode(continuation, add_special_tokens=False))
            prefix = self.prefix_token_id
            return (tokens[:1], tokens[1:]) if len(tokens) > 1 and tokens[0] == prefix else ([prefix], tokens)
        head = list(self.tok_encode(bare))
        if self.backend != "causal":
            return head, list(self.tok_encode(continuation, add_special_tokens=False))
        whole = list(self.tok_encode(bare + continuation))
        shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(head, whole[:-1], strict=False))))
        return (whole[:shared], whole[shared:]) if shared else ([self.prefix_token_id], whole)

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """The tokenizer's own template, where it has one."""
        found = getattr(self.tokenizer, "chat_template", None)
        if isinstance(found, Mapping):
            return str(found[chat_template if isinstance(chat_template, str) else "default"])
        return found if isinstance(found, str) else ""


registered: dict[str, type] = {}
"""Classes by the names that they were registered under."""


def register_model(*names: str) -> Callable[[Class], Class]:
    """Register a model class under one or more names, to be run as `lm/<name>`.

    Raises ConfigurationError where it is no class, has none of the three methods, or the name is taken by another class.
    """

    def register(found: Class) -> Class:
        if not inspect.isclass(found):
            raise ConfigurationError(
                f"`register_model` registers a class, not {type(found).__name__} ({', '.join(names)})."
            )
        if not any(callable(getattr(found, method, None)) for method in METHODS):
            raise ConfigurationError(
                f"The model class {found.__name__} has none of the methods {', '.join(METHODS)}."
            )
        own = found.__module__, found.__qualname__
        for name in names or (found.__name__,):
            if not name or "@" in name:
                raise ConfigurationError(
                    f"'{name}' cannot be a model's name: it must be non-empty and without '@'."
                )
            known = registered.get(name)
            if known is not None and (known.__module__, known.__qualname__) != own:
                raise ConfigurationError(
                    f"The model name '{name}' is already that of the class {known.__qualname__}."
                )
            registered[name] = found
        return found

    return register


def parse_arguments(text: str) -> dict[str, Any]:
    """ "key=value,key=value" as a mapping; values that read as JSON (numbers, true, null) are what they read as."""

    out: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise ConfigurationError(f"'{part}' is not an argument of the form key=value.")
        try:
            out[key.strip()] = from_json(value)
        except ValueError:
            out[key.strip()] = {"True": True, "False": False, "None": None}.get(value, value)
    return out


def argument_string(arguments: Mapping[str, Any]) -> str:
    """The inverse of `parse_arguments`. Raises ConfigurationError where a value holds a comma."""
    parts = [f"{key}={value}" for key, value in arguments.items()]
    if found := [part for part in parts if "," in part]:
        raise ConfigurationError(
            f"This model takes its arguments as 'key=value,key=value', so '{found[0]}' cannot contain a comma."
        )
    return ",".join(parts)
