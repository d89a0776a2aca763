"""The helpers of `lm_eval.utils` that model classes import.

They cover token windows, argument strings, reordering and remote tokenizers.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from evalwright.compat.lm_eval.runs.results_table import make_table as make_table
from evalwright.compat.lm_eval.server_calls import Refused, call_json
from evalwright.extend import ConfigurationError

eval_logger = logging.getLogger("evalwright.lm_eval")

Window = tuple[list[int], list[int]]


def get_rolling_token_windows(
    token_list: list[int], prefix_token: int, max_seq_len: int, context_len: int
) -> Iterator[Window]:
    """Split a long text into windows (input tokens, predicted tokens) that predict each token once.

    The first input begins with `prefix_token`; later inputs have at least `context_len` tokens of
    context that is not predicted again, and the last one as many as fit. Raises AssertionError
    unless 1 <= context_len <= max_seq_len.
    """
    assert 1 <= context_len <= max_seq_len, "1 <= context_len <= max_seq_len"
    count = len(token_list)
    done = min(max_seq_len, count)
    if count:
        yield [prefix_token, *token_list[: done - 1]], token_list[:done]
    while done < count:
        start = done
        done = min(done + max_seq_len - context_len + 1, count)
        yield token_list[done - max_seq_len - 1 : done - 1], token_list[start:done]


def make_disjoint_window(pair: Window) -> Window:
    """Cut a window's input to the tokens that it does not predict."""
    inputs, predicted = pair
    return inputs[: len(inputs) - len(predicted) + 1], predicted


def simple_parse_args_string(args_string: str | None) -> dict[str, Any]:
    """Parse "key=value,key=value" into a mapping; values are read by `handle_arg_string`.

    Raises ConfigurationError.
    """
    arguments: dict[str, Any] = {}
    for pair in filter(None, (args_string or "").strip().split(",")):
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ConfigurationError(
                f"'{pair}' is not an argument of the form key=value."
            )
        arguments[key] = handle_arg_string(value)
    return arguments


def handle_arg_string(arg: str) -> Any:
    """Parse one value: quoted text, true, false, none, a number, else plain text."""
    arg = arg.strip()
    if len(arg) >= 2 and arg[0] == arg[-1] and arg[0] in "'\"":
        return arg[1:-1]
    words = {"true": True, "false": False, "none": None}
    if arg.lower() in words:
        return words[arg.lower()]
    for number_type in (int, float) if arg.lstrip("+-").isdigit() else (float,):
        try:
            return number_type(arg)
        except ValueError:
            pass
    return arg


def group(arr: Iterable[Any], fn: Callable[[Any], Hashable]) -> list[list[Any]]:
    """Group elements by `fn`'s value, in the order in which the values first appear."""
    groups: dict[Hashable, list[Any]] = {}
    for element in arr:
        groups.setdefault(fn(element), []).append(element)
    return list(groups.values())


class Reorderer:
    """Sorts elements by `fn`, and puts results back into the original order."""

    def __init__(self, arr: Sequence[Any], fn: Callable[[Any], Any]) -> None:
        self._arr = arr
        # Equal keys stand together where the first of them came, as a stable sort leaves them.
        self._order = sorted(range(len(arr)), key=lambda index: fn(arr[index]))

    def get_reordered(self) -> list[Any]:
        """The elements in sorted order."""
        return [self._arr[index] for index in self._order]

    def get_original(self, newarr: Sequence[Any]) -> list[Any]:
        """Results of the sorted elements, in the original order."""
        return restore_order(self._order, newarr)


def restore_order(order: Sequence[int], responses: Iterable[Any]) -> list[Any]:
    """Put responses back at the positions given by `order`.

    Raises ValueError if their number differs.
    """
    original: list[Any] = [None] * len(order)
    for index, response in zip(order, responses, strict=True):
        original[index] = response
    return original


def create_iterator(
    raw_iterator: Iterable[Any],
    *,
    rank: int = 0,
    world_size: int = 1,
    limit: int | None = None,
) -> Iterator[Any]:
    """The elements that process `rank` of `world_size` handles, up to a limit."""
    return islice(raw_iterator, rank, limit, world_size)


def positional_deprecated(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function unchanged: nothing is deprecated here."""
    return fn


def hash_string(string: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(string.encode("utf-8")).hexdigest()


@functools.cache
def warning_once(logger: logging.Logger, msg: str, *args: Any) -> None:
    """Log a warning the first time only."""
    logger.warning(msg, *args)


@functools.cache
def info_once(logger: logging.Logger, msg: str, *args: Any) -> None:
    """Log a message the first time only."""
    logger.info(msg, *args)


def maybe_warn(msg: str, verbose: bool = True) -> None:
    """Log a warning if `verbose`."""
    if verbose:
        eval_logger.warning(msg)


def setup_logging(verbosity: int | str = logging.INFO) -> None:
    """Set the level of Evalwright's logger."""
    logging.getLogger("evalwright").setLevel(
        verbosity.upper() if isinstance(verbosity, str) else verbosity
    )


def handle_non_serializable(value: Any) -> Any:
    """Convert numpy numbers, sets and other objects for `json.dump(..., default=)`."""
    number = getattr(value, "item", None)
    if callable(number) and getattr(value, "shape", None) == ():
        return number()
    return list(value) if isinstance(value, set) else str(value)


class RemoteTokenizer:
    """The tokenizer of a server such as vLLM's.

    It uses the endpoints `/tokenizer_info`, `/tokenize` and `/detokenize`.
    """

    def __init__(
        self,
        base_url: str,
        timeout: int = 30,
        verify_certificate: bool = True,
        ca_cert_path: str | None = None,
        auth_token: str | None = None,
        max_retries: int = 3,
    ) -> None:
        self.base_url = re.sub(r"/v1/(chat/)?completions", "", base_url).rstrip("/")
        self.timeout = timeout
        self.max_retries = max_retries
        self.cert_config: bool | str = (
            (ca_cert_path or True) if verify_certificate else False
        )
        self.headers = {"Authorization": f"Bearer {auth_token}"} if auth_token else {}
        self.tokenizer_info: dict[str, Any] = dict(self._call("tokenizer_info"))

    def _call(self, path: str, body: Any = None) -> Any:
        """Call an endpoint, retrying on errors. Raises RuntimeError."""
        last: Exception | None = None
        for _ in range(self.max_retries):
            try:
                url = f"{self.base_url}/{path}"
                return call_json(
                    url, body, self.headers, self.timeout, self.cert_config
                )
            except (OSError, ValueError, Refused) as error:
                last = error
        raise RuntimeError(
            f"The server's tokenizer ({self.base_url}/{path}) failed: {last}"
        )

    eos_token = property(
        lambda self: self.tokenizer_info.get("eos_token"),
        doc="The text that ends a text.",
    )
    bos_token = property(
        lambda self: self.tokenizer_info.get("bos_token"),
        doc="The text that begins a text.",
    )
    pad_token = property(
        lambda self: self.tokenizer_info.get("pad_token"),
        doc="The text that fills rows.",
    )

    def _id_of(self, token: str | None) -> int | None:
        return None if token is None else self.encode(token)[0]

    eos_token_id = functools.cached_property(lambda self: self._id_of(self.eos_token))
    bos_token_id = functools.cached_property(lambda self: self._id_of(self.bos_token))
    eot_token = property(lambda self: self.eos_token_id, doc="As `eos_token_id`.")

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without special tokens."""
        body = {"prompt": text, "add_special_tokens": False}
        return list(
            self._call_field("tokenize", body, "tokens", list, "list of tokens")
        )

    def decode(self, tokens: list[int]) -> str:
        """The text of a list of tokens."""
        return str(
            self._call_field("detokenize", {"tokens": tokens}, "prompt", str, "text")
        )

    def _call_field(
        self, path: str, body: Any, name: str, expected_type: type, description: str
    ) -> Any:
        reply = self._call(path, body)
        content = reply.get(name) if isinstance(reply, dict) else None
        if not isinstance(content, expected_type):
            raise RuntimeError(f"The server's /{path} gave no {description}.")
        return content

    def batch_decode(self, tokens_list: list[list[int]]) -> list[str]:
        """The texts of several lists of tokens."""
        return [self.decode(tokens) for tokens in tokens_list]

    def apply_chat_template(
        self, chat_history: Any, add_generation_prompt: bool = True, **kwargs: Any
    ) -> str:
        """Render a conversation with the server's chat template, in a sandbox with limits.

        Raises ValueError if the server has none.
        """
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        from evalwright.extend import template_renderer

        if not (source := self.tokenizer_info.get("chat_template")):
            raise ValueError(f"The server at {self.base_url} has no chat template.")
        render = template_renderer(source, ImmutableSandboxedEnvironment)
        return render(
            {
                "messages": chat_history,
                "add_generation_prompt": add_generation_prompt,
                **kwargs,
            }
        )

    def __call__(
        self, text: str, add_special_tokens: bool = False, **kwargs: Any
    ) -> dict[str, Any]:
        return {"input_ids": self.encode(text)}


def check_remote_tokenizer_support(
    base_url: str, timeout: int = 5, *arguments: Any, **options: Any
) -> bool:
    """Whether a server has the tokenizer endpoints and they work.

    Takes the arguments of RemoteTokenizer.
    """
    try:
        tokenizer = RemoteTokenizer(base_url, timeout, *arguments, **options)
        return "eos_token" in tokenizer.tokenizer_info and bool(
            tokenizer.encode("test")
        )
    except (RuntimeError, ValueError):
        return False
