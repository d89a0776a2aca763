"""The helpers of `lm_eval.models.utils` that model classes import.

They cover batching, generation settings, truncation and images.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import chain, zip_longest
from typing import Any, Literal, TypedDict

from evalwright.compat.lm_eval.utils import (
    eval_logger,
    group,
    maybe_warn,
    restore_order,
    warning_once,
)

TOKENIZER_INFINITY = int(1e30)
"""The length that transformers gives a tokenizer whose limit is unknown."""
DEFAULT_MAX_LENGTH = 2048
"""The context length if nothing else defines it."""

Side = Literal["left", "middle", "right"]
BatchSize = Callable[[int, Any], int]

_TORCH = (
    "MultiTokenEOSCriteria clear_torch_cache get_dtype pad_and_concat"
    " stop_sequences_criteria"
)


def __getattr__(name: str) -> Any:
    """Names that were in this module before release 0.4.12."""
    if name not in _TORCH.split():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from evalwright.compat.lm_eval.models import utils_hf

    return getattr(utils_hf, name)


class GenKwargs(TypedDict, total=False):
    """Generation settings as `normalize_gen_kwargs` returns them, plus any that a class adds."""

    do_sample: bool
    temperature: float
    max_gen_toks: int
    until: list[str]


def chunks(
    _iter: Iterable[Any], n: int = 0, fn: BatchSize | None = None
) -> Iterator[list[Any]]:
    """Yield lists of `n` elements (0: all), or of as many as `fn(index, elements)` returns."""
    batch: list[Any] = []
    for index, element in enumerate(_iter):
        batch.append(element)
        if len(batch) == (fn(index, _iter) if fn else n):
            yield batch
            batch = []
    if batch:
        yield batch


class Collator:
    """Sorts elements by `sort_fn`, batches them, and restores the original order of results.

    Model classes of lm_eval call it; nothing of ours but classes to derive from does.

    group_by: "gen_kwargs" batches only elements with the same settings (`group_fn`). "contexts"
    keeps one of all elements with the same tokens (`group_fn`: context and continuation without its
    last token); `get_cache` returns the results of the others.
    """

    def __init__(
        self,
        arr: Sequence[Any],
        sort_fn: Callable[[Any], Any] = lambda element: element,
        group_fn: Callable[[Any], Any] = lambda element: element[1],
        group_by: Literal["gen_kwargs", "contexts"] | None = None,
    ) -> None:
        self._group_by = group_by
        self._sort_fn = sort_fn
        self._size = len(arr)
        self._order: list[int] = []
        placed = list(enumerate(arr))
        self._groups: dict[Any, list[tuple[int, Any]]] = (
            {None: placed}
            if group_by is None
            else self.group(placed, lambda pair: group_fn(pair[1]), group_by)
        )

    def get_batched(
        self, n: int = 1, batch_fn: BatchSize | None = None
    ) -> Iterator[list[Any]]:
        """Yield batches of `n` elements (0: all), or of as many as `batch_fn` returns.

        With "contexts", only the longest continuation of each group.
        """
        if self._group_by == "contexts":
            longest = [
                max(members, key=lambda pair: len(pair[1][-1]))
                for members in self._groups.values()
            ]
            yield from self.get_chunks(
                [element for _, element in self._sorted(longest)], n, batch_fn
            )
            return
        for members in self._groups.values():
            ordered = self._sorted(members)
            self._order += [index for index, _ in ordered]
            yield from self.get_chunks([element for _, element in ordered], n, batch_fn)

    def _sorted(self, placed: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
        return sorted(placed, key=lambda pair: self._sort_fn(pair[1]))

    def get_cache(
        self, req_str: Any, cxt_toks: list[int], cont_toks: list[int], logits: Any
    ) -> Iterator[tuple[Any, list[int], Any]]:
        """Yield (request, continuation tokens, logits) for each request that shares these logits.

        logits: shape [1, tokens, vocabulary].
        """
        if self._group_by != "contexts":
            yield req_str, cont_toks, logits
            return
        members = self._groups.pop((*cxt_toks, *cont_toks[:-1]))
        self._order += [index for index, _ in members]
        if len(members) == 1:
            yield req_str, cont_toks, logits
        else:
            for _, element in members:
                yield element[0], element[-1], logits

    def get_original(self, newarr: Sequence[Any]) -> list[Any]:
        """Results in the original order of the elements."""
        assert len(self._order) == self._size, "There are items without a result."
        return restore_order(self._order, newarr)

    def __len__(self) -> int:
        return self._size

    @staticmethod
    def group(
        arr: Iterable[Any], fn: Callable[[Any], Any], group_by: str = "gen_kwargs"
    ) -> dict[Any, list[Any]]:
        """Group elements by `fn`'s value: tokens, or settings that must all be equal."""

        def key(element: Any) -> Hashable:
            group_value = fn(element)
            return (
                tuple(group_value)
                if group_by == "contexts"
                else _hashable_key(group_value)
            )

        return {key(members[0]): members for members in group(arr, key)}

    @staticmethod
    def get_chunks(
        _iter: Iterable[Any], n: int = 0, fn: BatchSize | None = None
    ) -> Iterator[list[Any]]:
        """As `chunks`, for elements that `fn` may index."""
        return chunks(tuple(_iter), n, fn)


def _hashable_key(settings: Any) -> Hashable:
    """Convert nested settings to a hashable key; different settings give different keys."""
    if isinstance(settings, Mapping):
        return (
            "mapping",
            *sorted(
                (str(name), _hashable_key(setting))
                for name, setting in settings.items()
            ),
        )
    if isinstance(settings, list | tuple | set):
        return ("list", *map(_hashable_key, settings))
    return (type(settings).__name__, repr(settings))


class Grouper:
    """Groups elements by `fn`'s value, and restores the original order of results."""

    def __init__(self, arr: Sequence[Any], fn: Callable[[Any], Hashable]) -> None:
        placed = group(enumerate(arr), lambda pair: fn(pair[1]))
        self._places = {
            fn(members[0][1]): [index for index, _ in members] for members in placed
        }
        self._grouped = {
            fn(members[0][1]): [element for _, element in members] for members in placed
        }

    def get_grouped(self) -> dict[Any, list[Any]]:
        """The elements by value."""
        return self._grouped

    def get_original(self, grouped_dict: Mapping[Any, Sequence[Any]]) -> list[Any]:
        """Results in the original order of the elements."""
        assert grouped_dict.keys() == self._places.keys()
        order = chain.from_iterable(self._places[key] for key in grouped_dict)
        return restore_order(
            list(order), list(chain.from_iterable(grouped_dict.values()))
        )


def undistribute(iterable: Iterable[Iterable[Any]]) -> list[Any]:
    """Interleave lists that elements were dealt out to; None is dropped."""
    turns = zip_longest(*map(list, iterable))
    return [element for element in chain.from_iterable(turns) if element is not None]


def retry_on_specific_exceptions(
    on_exceptions: list[type[Exception]],
    max_retries: int | None = None,
    backoff_time: float = 3.0,
    backoff_multiplier: float = 1.5,
    on_exception_callback: Callable[[Exception, float], Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Retry a function on these exceptions, waiting longer each time, up to `max_retries` times."""

    def decorator(func: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            wait = backoff_time
            attempt = 0
            while True:
                try:
                    return func(*args, **kwargs)
                except tuple(on_exceptions) as error:
                    attempt += 1
                    if on_exception_callback is not None:
                        on_exception_callback(error, wait)
                    if attempt == max_retries:
                        raise
                    time.sleep(wait)
                    wait *= backoff_multiplier

        return wrapper

    return decorator


def configure_pad_token(tokenizer: Any, model_config: Any = None) -> Any:
    """Give the tokenizer a padding token: its own, the unknown or end token, or a new one."""
    if getattr(tokenizer, "pad_token_id", None) is not None or getattr(
        tokenizer, "pad_token", None
    ):
        return tokenizer
    for role in ("unk", "eos"):
        if getattr(tokenizer, f"{role}_token", None):
            tokenizer.pad_token_id = getattr(tokenizer, f"{role}_token_id")
            return tokenizer
    if getattr(model_config, "model_type", None) == "qwen":
        tokenizer.pad_token = "<|endoftext|>"
    elif type(tokenizer).__name__ not in (
        "RWKVWorldTokenizer",
        "Rwkv5Tokenizer",
    ):  # they fill with 0
        tokenizer.add_special_tokens({"pad_token": "<|pad|>"})
    return tokenizer


def resolve_max_length(
    config: Any, tokenizer: Any = None, *, default: int = DEFAULT_MAX_LENGTH
) -> int:
    """The context length in tokens: from the configuration, the tokenizer, or `default`.

    A configuration's text part comes first.
    """
    config = getattr(config, "text_config", None) or config
    for name in ("n_positions", "max_position_embeddings", "n_ctx"):
        if (length := getattr(config, name, None)) is not None:
            return int(length)
    length = getattr(tokenizer, "model_max_length", None)
    return default if length is None or length == TOKENIZER_INFINITY else int(length)


def handle_stop_sequences(until: str | list[str] | None, eos: str | None) -> list[str]:
    """Return the stop strings as a list, with the end text added.

    Raises ValueError for anything but text or a list.
    """
    if not (until is None or isinstance(until, str | list)):
        raise ValueError(f"`until` must be a text or a list of texts, not {until!r}.")
    stops = [until] if isinstance(until, str) else list(until or ())
    return stops if eos is None or eos in stops else [*stops, eos]


_LIMITS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")


def normalize_gen_kwargs(
    gen_kwargs: Mapping[str, Any], default_max_gen_toks: int = 256
) -> Any:
    """Normalise generation settings.

    `until` becomes a list, the token limit `max_gen_toks`. Without sampling the temperature is 0.
    If `do_sample` is not given, it is whether the temperature is above 0.
    """
    settings = {
        name: setting for name, setting in gen_kwargs.items() if name not in _LIMITS
    }
    limits = {
        name: gen_kwargs[name] for name in _LIMITS if gen_kwargs.get(name) is not None
    }
    if len(limits) > 1:
        warning_once(
            eval_logger, f"Several limits are given: {limits}. The first counts."
        )
    until = settings.get("until", [])
    settings["until"] = list(until) if isinstance(until, list) else [until]
    settings["max_gen_toks"] = int(next(iter(limits.values()), default_max_gen_toks))
    temperature = float(settings.get("temperature", 0.0))
    if settings.get("do_sample") is None:
        settings["do_sample"] = temperature > 0
    elif settings["do_sample"] is False:
        if temperature:
            warning_once(
                eval_logger,
                f"do_sample=False: temperature={temperature} has no effect.",
            )
        settings["temperature"] = 0.0
    elif not temperature:
        warning_once(
            eval_logger,
            "do_sample=True with temperature 0 samples nothing: set a temperature.",
        )
    return settings


def truncate_tokens(
    tokens: list[int], max_length: int, side: Side = "left"
) -> list[int]:
    """Cut tokens to a length, at one side or in the middle."""
    if side == "left":
        return tokens[-max_length:]
    if side == "right":
        return tokens[:max_length]
    if side == "middle":
        half = max_length // 2
        return tokens[:half] + tokens[half - max_length :]
    raise ValueError(f"side={side!r} must be 'left', 'middle' or 'right'.")


def maybe_truncate(
    tokens: list[int],
    max_gen_toks: int,
    max_model_len: int,
    min_gen_toks: int = 1,
    side: Side = "left",
    shrink_gen_toks: bool = False,
    verbose: bool = True,
) -> tuple[list[int], int]:
    """Truncate tokens and the generation limit so that both fit into the model.

    The context is cut; with `shrink_gen_toks` the answer is shortened first, down to
    `min_gen_toks`. Raises ValueError if even that does not fit.
    """
    room = max_model_len - len(tokens)
    if max_gen_toks <= room:
        return tokens, max_gen_toks
    overflow = (
        f"{len(tokens)} tokens and {max_gen_toks} to generate do not fit into"
        f" {max_model_len}"
    )
    if not shrink_gen_toks:
        maybe_warn(f"{overflow}: the context is cut at its {side}.", verbose)
        return truncate_tokens(tokens, max_model_len - max_gen_toks, side), max_gen_toks
    if room >= min_gen_toks:
        maybe_warn(f"{overflow}: at most {room} are generated.", verbose)
        return tokens, room
    if max_model_len <= min_gen_toks:
        raise ValueError(
            f"A model of {max_model_len} tokens is too small to generate"
            f" {min_gen_toks}."
        )
    maybe_warn(
        f"{overflow}: the context is cut at its {side}, and {min_gen_toks} are generated.",
        verbose,
    )
    return truncate_tokens(tokens, max_model_len - min_gen_toks, side), min_gen_toks


def postprocess_generated_text(
    generation: str, stop: list[str] | str | None, think_end_token: str | None
) -> str:
    """Remove reasoning (up to `think_end_token`), and cut at the first stop string."""
    if think_end_token:
        generation = generation.rpartition(think_end_token)[2].lstrip()
    for text in [stop] if isinstance(stop, str) else stop or ():
        if text:
            generation = generation.partition(text)[0]
    return generation


def has_bos_prefix(sequence: str, bos_str: str | Iterable[str] | None = None) -> bool:
    """Whether a text begins with the BOS text, or one of several."""
    if bos_str is None:
        return False
    return sequence.startswith(bos_str if isinstance(bos_str, str) else tuple(bos_str))


def _add_special_kwargs(
    add_special_tokens: bool | None, add_bos: bool | None = None
) -> dict[str, bool]:
    """The tokenizer's argument for special tokens; empty if nothing is set."""
    wish = add_bos if add_special_tokens is None else add_special_tokens
    return {} if wish is None else {"add_special_tokens": wish}


def replace_placeholders(
    string: str, default_placeholder: str, image_token: str, max_images: int
) -> str:
    """Replace the first `max_images` placeholders with the model's image token.

    Further placeholders stay, unless they are that token themselves.
    """
    first, *segments = string.split(default_placeholder)
    kept_placeholder = default_placeholder if default_placeholder != image_token else ""
    return first + "".join(
        (image_token if index < max_images else kept_placeholder) + segment
        for index, segment in enumerate(segments)
    )


def flatten_image_list(images: list[list[Any]]) -> list[Any]:
    """The images of all lists."""
    return list(chain.from_iterable(images))


def resize_image(
    image: Any,
    width: int | None = None,
    height: int | None = None,
    max_dimension: int | None = None,
    keep_aspect_ratio: bool = True,
    resample_filter: int | None = None,
    min_width: int = 1,
    min_height: int = 1,
) -> Any:
    """Shrink a PIL image to a width, a height, both, or a longest side, in pixels.

    keep_aspect_ratio: with both width and height, fit inside them instead of using them as they
    are.
    """
    wide, high = image.size
    if width is not None and height is not None:
        scale = min(width / wide, height / high)
        size = (width, height)
        fits = wide <= width and high <= height
        if keep_aspect_ratio:
            size = int(wide * scale), int(high * scale)
    elif width is not None:
        size = (width, int(width / wide * high))
        fits = wide <= width
    elif height is not None:
        size = (int(height / high * wide), height)
        fits = high <= height
    elif max_dimension is not None:
        across = int(max_dimension / high * wide)
        down = int(max_dimension / wide * high)
        size = (max_dimension, down) if wide > high else (across, max_dimension)
        fits = max(wide, high) <= max_dimension
    else:
        return image
    return (
        image
        if fits
        else image.resize(
            (max(size[0], min_width), max(size[1], min_height)), resample_filter
        )
    )
