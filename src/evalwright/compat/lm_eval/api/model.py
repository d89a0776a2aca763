"""The model interface of lm-evaluation-harness's New Model Guide.

It has three methods over lists of `Instance`. A class written after that guide derives from `LM`
(or `TemplateLM`) here instead of there, and runs as `lm/<name>`; `models.adapter` makes it a model
of ours.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
from abc import ABC
from collections.abc import Iterable, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from evalwright.compat.lm_eval.api.instance import Instance
from evalwright.compat.lm_eval.api.registry import METHODS
from evalwright.compat.lm_eval.utils import simple_parse_args_string
from evalwright.extend import ConfigurationError

ModelClass = TypeVar("ModelClass", bound="LM")
eval_logger = logging.getLogger(__name__)


class LM(ABC):  # noqa: B024 - a method that is left out is an ability that the model has not
    """Base class of models.

    Define the methods that the model supports; the others are never called. Each takes a list of
    instances and returns as many results in the same order, as a list or a generator. Results of a
    generator count as soon as they are yielded.
    """

    _rank = 0
    _world_size = 1
    _device: Any = None

    def __init__(self) -> None:
        self.cache_hook: Any = CacheHook(None)

    def loglikelihood(self, requests: list[Instance]) -> Iterable[tuple[float, bool]]:
        """Return (log-probability of the continuation, whether it is greedy) for each request."""
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Instance]) -> Iterable[float]:
        """Return the log-probability of each text, in windows if it exceeds the model's context."""
        raise NotImplementedError

    def generate_until(self, requests: list[Instance]) -> Iterable[str]:
        """Generate a text after each prompt, up to the first stop string."""
        raise NotImplementedError

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> Any:
        """Render a conversation as text. A class that defines it takes messages.

        add_generation_prompt: end with the opening of the model's turn; False if the last message
        is a prefill.
        """
        raise NotImplementedError

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """The source of the chat template, if there is one."""
        return ""

    @property
    def tokenizer_name(self) -> str:
        """The tokenizer's name."""
        raise NotImplementedError

    @classmethod
    def create_from_arg_string(
        cls: type[ModelClass],
        arg_string: str,
        additional_config: Mapping[str, Any] | None = None,
    ) -> ModelClass:
        """Create a model from "key=value,key=value", parsed by `utils.simple_parse_args_string`."""
        return cls.create_from_arg_obj(
            simple_parse_args_string(arg_string), additional_config
        )

    @classmethod
    def create_from_arg_obj(
        cls: type[ModelClass],
        arg_dict: Mapping[str, Any],
        additional_config: Mapping[str, Any] | None = None,
    ) -> ModelClass:
        """Create a model from a mapping of arguments; None in `additional_config` is ignored."""
        extra_config = {
            key: value
            for key, value in (additional_config or {}).items()
            if value is not None
        }
        return cls(**arg_dict, **extra_config)

    @property
    def device(self) -> Any:
        """Where the model is."""
        return self._device

    @device.setter
    def device(self, device: Any) -> None:
        """The device that the model is on."""
        self._device = device

    @property
    def rank(self) -> int:
        """0, unless a class distributes its requests itself."""
        return self._rank

    @property
    def world_size(self) -> int:
        """1, unless a class distributes its requests itself."""
        return self._world_size

    def all_gather(self, tensor: Any) -> Any:
        """Gather tensors of all processes; there is only one process."""
        return tensor

    def gather_object(self, obj: Any, dst: int = 0) -> list[Any] | None:
        """Gather objects of all processes; there is only one process."""
        return [obj]

    def barrier(self) -> None:
        """Wait for all processes; there is one."""

    def set_cache_hook(self, cache_hook: Any) -> None:
        """Set the hook that is told of finished requests."""
        self.cache_hook = cache_hook


def hash_args(attr: str, args: Iterable[Any]) -> str:
    """Compute a request's cache key from its method and arguments.

    Images and bytes are hashed by content.
    """
    return hashlib.sha256(
        json.dumps([attr, *args], default=_content_hash).encode()
    ).hexdigest()


def _content_hash(value: Any) -> dict[str, str]:
    if isinstance(value, bytes | bytearray):
        return {"__bytes_sha256__": hashlib.sha256(value).hexdigest()}
    if type(value).__module__.startswith("PIL."):
        buffer = BytesIO()
        value.save(buffer, format="PNG")
        return {"__pil_image_sha256__": hashlib.sha256(buffer.getvalue()).hexdigest()}
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


class CacheHook:
    """Where model classes report finished requests: to a CachingLM, if there is one.

    The engine stores every response anyway.
    """

    def __init__(self, cachinglm: CachingLM | None = None) -> None:
        self.dbdict = None if cachinglm is None else cachinglm.dbdict

    def add_partial(self, attr: str, req: Iterable[Any], res: Any) -> None:
        """Store the result of one request."""
        if self.dbdict is not None:
            self.dbdict[hash_args(attr, req)] = res


class _ResultStore:
    """Results by key in a SQLite file, as JSON: nothing is unpickled."""

    def __init__(self, path: str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._lock = Lock()
        self._file = sqlite3.connect(path, check_same_thread=False)
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, result TEXT NOT"
            " NULL)"
        )

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def __getitem__(self, key: str) -> Any:
        if (cached := self.get(key)) is None:
            raise KeyError(key)
        return cached

    def __setitem__(self, key: str, result: Any) -> None:
        with self._lock, self._file:
            text = json.dumps(result, default=float)
            self._file.execute(
                "INSERT OR REPLACE INTO results VALUES (?, ?)", (key, text)
            )

    def __len__(self) -> int:
        with self._lock:
            return int(self._file.execute("SELECT count(*) FROM results").fetchone()[0])

    def get(self, key: str) -> Any:
        with self._lock:
            row = self._file.execute(
                "SELECT result FROM results WHERE key=?", (key,)
            ).fetchone()
        if row is None:
            return None
        cached = json.loads(row[0])
        return tuple(cached) if isinstance(cached, list) else cached

    def commit(self) -> None:
        """Do nothing: every write is committed at once."""

    def close(self) -> None:
        self._file.close()


class CachingLM:
    """A model that answers repeated requests from a file; sampled texts are always generated again.

    For scripts that call a model object themselves: what the engine asks is in the store anyway.

    cache_db: the SQLite file. Caches of lm_eval itself hold pickles and are not read; results go to
    a table of their own.
    """

    def __init__(self, lm: Any, cache_db: str) -> None:
        self.lm = lm
        self.cache_db = cache_db
        self.dbdict = _ResultStore(cache_db)
        lm.set_cache_hook(self.get_cache_hook())

    def __getattr__(self, name: str) -> Any:
        if name == "lm":  # not made yet, as in a copy
            raise AttributeError(name)
        attribute = getattr(self.lm, name)
        return partial(self._cached, name) if name in METHODS else attribute

    def _cached(self, method: str, requests: list[Instance]) -> list[Any]:
        def key_of(request: Instance) -> str:
            sampled = method == "generate_until" and request.args[1].get(
                "do_sample", False
            )
            return "" if sampled else hash_args(method, request.args)

        keys = list(map(key_of, requests))
        responses = [self.dbdict.get(key) if key else None for key in keys]
        waiting = [
            index for index, response in enumerate(responses) if response is None
        ]
        computed = (
            getattr(self.lm, method)([requests[index] for index in waiting])
            if waiting
            else ()
        )
        for index, response in zip(waiting, computed, strict=True):
            responses[index] = response
            if keys[index]:
                self.dbdict[keys[index]] = response
        return responses

    def get_cache_hook(self) -> CacheHook:
        """A hook that stores in this file."""
        return CacheHook(self)


class TemplateLM(LM):
    """An LM with a tokenizer: define `tok_encode`, `eot_token_id` and `_loglikelihood_tokens`."""

    tokenizer: Any = None
    backend = "causal"

    @property
    def eot_token_id(self) -> Any:
        """The token that ends a text."""
        raise NotImplementedError

    @property
    def prefix_token_id(self) -> Any:
        """The token from which a text's first token is predicted."""
        return self.eot_token_id

    def tok_encode(
        self, string: str, add_special_tokens: bool | None = None, **kwargs: Any
    ) -> Any:
        """The tokens of a text."""
        raise NotImplementedError

    def _loglikelihood_tokens(
        self,
        requests: list[tuple[tuple[str, str], list[int], list[int]]],
        **kwargs: Any,
    ) -> Iterable[tuple[float, bool]]:
        """Score requests ((context, continuation), context tokens, continuation tokens)."""
        raise NotImplementedError

    def loglikelihood(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> Iterable[tuple[float, bool]]:
        """Tokenise each pair and score the continuation's tokens.

        An empty context is replaced by the prefix token, or by the text's own first token if that
        is the prefix token.
        """
        encoded = []
        for context, continuation in (request.args for request in requests):
            encoded.append(
                ((context, continuation), *self.encoded_pair(context, continuation))
            )
        return self._loglikelihood_tokens(encoded, disable_tqdm=disable_tqdm)

    def encoded_pair(
        self, context: str, continuation: str
    ) -> tuple[list[int], list[int]]:
        """The tokens of a context, which may be empty, and of its continuation."""
        if context != "":
            return self._encode_pair(context, continuation)
        tokens = list(self.tok_encode(continuation, add_special_tokens=False))
        prefix = self.prefix_token_id
        return (
            (tokens[:1], tokens[1:]) if tokens[:1] == [prefix] else ([prefix], tokens)
        )

    def _encode_pair(
        self, context: str, continuation: str
    ) -> tuple[list[int], list[int]]:
        """The tokens of a context and its continuation, split as lm_eval splits them.

        White space at the context's end goes to the continuation. Both are tokenised together, and
        the first as many tokens as the context has alone are dropped, so a token that spans the
        boundary is lost. Raises AssertionError for an empty context.
        """
        assert context, (
            "The context is empty: `loglikelihood` puts the prefix token in its place."
        )
        stripped = context.rstrip()
        continuation = context[len(stripped) :] + continuation
        head = self.tok_encode(stripped)
        if self.backend != "causal":
            return head, self.tok_encode(continuation, add_special_tokens=False)
        return head, self.tok_encode(stripped + continuation)[len(head) :]

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """The tokenizer's chat template, by name if it has several; None if there is none."""
        if self.tokenizer is None:
            return ""
        if chat_template is False or chat_template is None:
            return None
        template = getattr(self.tokenizer, "chat_template", None)
        template = template or getattr(self.tokenizer, "default_chat_template", None)
        if isinstance(template, Mapping):
            name = chat_template if isinstance(chat_template, str) else "default"
            if name not in template:
                raise ValueError(
                    f"The tokenizer has no chat template {name!r}, only"
                    f" {sorted(template)}."
                )
            template = template[name]
        return template if isinstance(template, str) else None


def argument_string(arguments: Mapping[str, Any]) -> str:
    """Write arguments as `simple_parse_args_string` reads them.

    Raises ConfigurationError if a value contains a comma.
    """
    pairs = [f"{key}={value}" for key, value in arguments.items()]
    if ambiguous := [pair for pair in pairs if "," in pair]:
        raise ConfigurationError(
            f"This model takes its arguments as 'key=value,key=value', so '{ambiguous[0]}'"
            " cannot contain a comma."
        )
    return ",".join(pairs)
