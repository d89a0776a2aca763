"""Loads a model and its tokenizer, quietly, and collects what the token rules need to know."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    GenerationConfig,
)

from evalwright.core.errors import ConfigurationError, EvalwrightError, ModelError
from evalwright.core.requests import Prompt
from evalwright.core.tools import ToolDefinition
from evalwright.models.local.hf.batching import text_config
from evalwright.models.local.hf.options import HfOptions, bitsandbytes_config
from evalwright.models.local.hf.prompts import ChatRenderer
from evalwright.models.local.hf.quiet import quiet, verbose
from evalwright.models.local.hf.source import Checkpoint
from evalwright.models.local.hf.vision import Vision, load_processor
from evalwright.models.local.model_files import context_length
from evalwright.models.local.tokens import Reader, TokenRules, rules_for

FALLBACK_LENGTH = 2048
"""Context length of a model that does not state its own."""

_TRUST = "; if you trust that, set trust_remote_code=true."
_REASONING_TAG = re.compile(
    r"</?(think|thinking|thought|reasoning|reflection)>|\[/?THINK\]", re.IGNORECASE
)
_CHANNELS = ("<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|return|>")


class HubEncoder:
    """A transformers tokenizer as an `Encoder`.

    Decoding leaves reasoning tags in the text even if they are special tokens, so that reasoning
    can be separated later.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        visible = {
            token
            for text, token in tokenizer.get_added_vocab().items()
            if _REASONING_TAG.fullmatch(text)
        }
        if "<|channel|>" in tokenizer.get_added_vocab():
            visible |= {
                token
                for text, token in tokenizer.get_added_vocab().items()
                if text in _CHANNELS
            }
        # Many tokens that files mark as special (such as Llama's headers) have no role that the
        # tokenizer names.
        marked = {
            number
            for number, token in tokenizer.added_tokens_decoder.items()
            if token.special
        }
        self._dropped = marked.union(tokenizer.all_special_ids) - visible
        # Sibling requests have one context and come one after another.
        self._encode = lru_cache(maxsize=256)(self._encode_once)
        self._prepared: dict[tuple[str, bool], list[int]] = {}
        self._batch = _batch_encoder(tokenizer)

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        prepared = self._prepared.get((text, add_special_tokens))
        return list(
            self._encode(text, add_special_tokens) if prepared is None else prepared
        )

    def prepare(self, texts: Iterable[tuple[str, bool]]) -> None:
        """Encode texts that will be needed, `(text, add_special_tokens)`, on all cores.

        It forgets the texts of the last call.
        """
        self._prepared = {}
        if self._batch is None:
            return
        requested = set(texts)
        for special in (True, False):
            texts_of_kind = [text for text, how in requested if how is special]
            with suppress(
                Exception
                # such as a lone surrogate: the one text at fault fails when its request is answered
            ):
                encodings = self._batch(texts_of_kind, add_special_tokens=special)
                self._prepared |= {
                    (text, special): encoding.ids
                    for text, encoding in zip(texts_of_kind, encodings, strict=True)
                }

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool) -> str:
        if skip_special_tokens:
            tokens = [token for token in tokens if token not in self._dropped]
        text: str = self.tokenizer.decode(
            list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text

    def _encode_once(self, text: str, add_special_tokens: bool) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(text, add_special_tokens=add_special_tokens))


def _batch_encoder(tokenizer: Any) -> Callable[..., list[Any]] | None:
    """Return the tokenizers library's batch function, if it agrees with transformers' tokenizer."""
    core = getattr(tokenizer, "backend_tokenizer", None)
    function: Callable[..., list[Any]] | None = getattr(core, "encode_batch_fast", None)
    if function is None:
        return None
    probe = [
        "",
        " a",
        "One two\n\n three.  Four ",
        "<s>é</s> 東京 <|im_start|>" + "".join(tokenizer.all_special_tokens),
    ]
    try:
        for special in (True, False):
            encoded = [
                encoding.ids for encoding in function(probe, add_special_tokens=special)
            ]
            if encoded != [
                tokenizer.encode(text, add_special_tokens=special) for text in probe
            ]:
                return None
    except Exception:  # any refusal means that this way is not available
        return None
    return function


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in memory.

    Attributes:
        model: the transformers model.
        encoder: its tokenizer.
        reader: how it reads prompts.
        device: where token ids go.
        end_tokens: tokens that end an answer, from the generation config, else the tokenizer.
        pad_token: the token for padding.
        start_tokens: the first tokens of a decoder with an encoder; empty for a decoder-only model.
        spread: whether parts of the model are on other devices.
        own_sampling: the checkpoint's generation config.
        vision: reads prompts with images, if the model takes them.
    """

    model: Any
    encoder: HubEncoder
    reader: Reader
    device: str
    end_tokens: frozenset[int]
    pad_token: int
    start_tokens: tuple[int, ...] = ()
    spread: bool = False
    own_sampling: Mapping[str, Any] = field(default_factory=dict)
    vision: Vision | None = None


def load(
    source: Checkpoint,
    tokenizer_source: Checkpoint,
    options: HfOptions,
    adapter: Checkpoint | None = None,
) -> Loaded:
    """Load model and tokenizer.

    Raises:
        ConfigurationError: an argument cannot be used.
        ModelError: the model cannot be loaded.
    """
    check_device(options.device)
    tokenizer = load_tokenizer(tokenizer_source, options.trust_remote_code)
    with quiet():
        model = _load_model(source, options)
        if adapter is not None:
            model = _add_adapter(model, tokenizer, source, adapter, options)
    if options.quantisation is not None and not verbose():
        # bitsandbytes would warn in every pass that it computes in float16, and about a renamed
        # function of torch.
        warnings.filterwarnings("ignore", module=r"bitsandbytes(\..*)?")
    encoder = HubEncoder(tokenizer)
    lacks_begin(tokenizer, source, options)
    check_vocabulary(source, tokenizer, model)
    length = context_length(
        text_config(model).to_dict(), tokenizer_source.tokenizer_config
    )
    reader = _reader(encoder, length, options, parts=source.sees_images)
    ends = _end_tokens(model, tokenizer)
    starts = _start_tokens(source, model)
    own_sampling = model.generation_config.to_dict()
    # Only what a request asks for is done: a checkpoint's own sampling settings and penalties do
    # not apply.
    model.generation_config = GenerationConfig()
    device = options.device if options.placement is None else input_device(model)
    vision = None
    if source.sees_images:
        processor = load_processor(
            source, source_arguments(source, options.trust_remote_code)
        )
        vision = Vision(processor, model, device, reader.render)
    return Loaded(
        model=model,
        encoder=encoder,
        reader=reader,
        device=device,
        vision=vision,
        end_tokens=ends,
        pad_token=_first(
            tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.bos_token_id, 0
        ),
        start_tokens=starts,
        spread=is_spread(model),
        own_sampling=own_sampling,
    )


def lacks_begin(tokenizer: Any, source: Checkpoint, options: HfOptions) -> bool:
    """Return whether texts lack the BOS of add_bos because the tokenizer has none.

    That happens with the published token rules only; the corrected ones raise ConfigurationError.
    """
    if not options.add_bos or tokenizer.bos_token_id is not None:
        return False
    if options.token_rules != "published":
        raise ConfigurationError(
            f"add_bos is set, but the tokenizer of '{source.where}' has no BOS token."
            " Leave add_bos out."
        )
    return True


def load_reader(
    source: Checkpoint, tokenizer_source: Checkpoint, options: HfOptions
) -> Reader:
    """Load the tokenizer and its rules without the weights.

    Raises:
        ConfigurationError: they cannot be loaded.
    """
    tokenizer = load_tokenizer(tokenizer_source, options.trust_remote_code)
    length = context_length(source.config, tokenizer_source.tokenizer_config)
    return _reader(HubEncoder(tokenizer), length, options, parts=source.sees_images)


def _reader(
    encoder: HubEncoder, length: int | None, options: HfOptions, *, parts: bool
) -> Reader:
    tokenizer = encoder.tokenizer
    rules = rules_for(
        encoder,
        bos_token=tokenizer.bos_token_id,
        eos_token=tokenizer.eos_token_id,
        max_length=options.max_length or length or FALLBACK_LENGTH,
        add_special_tokens=options.add_special_tokens,
        add_bos=options.add_bos,
        published=options.token_rules == "published",
    )
    rules = _with_prefix(rules, tokenizer, options.prefix_token)
    renderer = ChatRenderer(
        tokenizer,
        options.chat_template,
        options.template_arguments,
        parts=parts,
        published=rules.published,
    )

    def render(
        prompt: Prompt, tools: tuple[ToolDefinition, ...] = (), /
    ) -> tuple[str, TokenRules]:
        text, complete = renderer.render(prompt, tools)
        return text, (
            rules.without_special_tokens()
            if complete and not rules.published
            else rules
        )

    return Reader(encoder, rules, render, renderer.tool_format)


def load_tokenizer(
    source: Checkpoint, trust_remote_code: bool = False, about_code: str = _TRUST
) -> Any:
    """Load the tokenizer of a folder or repository.

    Raises:
        ConfigurationError: it cannot be loaded.
    """
    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(
                source.where, **source_arguments(source, trust_remote_code)
            )
    except Exception as error:
        raise ConfigurationError(
            f"The tokenizer of '{source.where}' cannot be loaded:"
            f" {library_error(error, about_code)}"
        ) from error
    # Lengths are checked elsewhere; the tokenizer would only complain about a text that is cut into
    # windows anyway.
    tokenizer.model_max_length = 1 << 62
    return tokenizer


def _load_model(source: Checkpoint, options: HfOptions) -> Any:
    arguments = source_arguments(source, options.trust_remote_code)
    if options.attn_implementation is not None:
        arguments["attn_implementation"] = options.attn_implementation
    if options.quantisation is not None:
        arguments["quantization_config"] = bitsandbytes_config(options.quantisation)
    # A quantised or split model is placed by its loader, and cannot be cast or moved.
    placed = bool(options.placement or options.quantisation or source.quantisation)
    if options.placement is not None:
        arguments |= options.placement
    elif options.quantisation is not None:
        arguments["device_map"] = {"": options.device}
    try:
        config = AutoConfig.from_pretrained(
            source.where, **source_arguments(source, options.trust_remote_code)
        )
        model_class: Any = (
            AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        )
        if source.sees_images:
            model_class = AutoModelForImageTextToText
        model = model_class.from_pretrained(
            source.where, dtype=getattr(torch, options.dtype), **arguments
        )
        return (model if placed else model.to(options.device)).eval()
    except EvalwrightError:
        raise
    except Exception as error:
        raise ModelError(
            f"The model '{source.where}' cannot be loaded: {library_error(error)}"
        ) from error


def _add_adapter(
    model: Any,
    tokenizer: Any,
    source: Checkpoint,
    adapter: Checkpoint,
    options: HfOptions,
) -> Any:
    """Add the adapter, merged into the model's weights unless these are quantised or placed.

    Merged or not, the result is a transformers model as before, not a wrapper. Embeddings grow to
    the tokenizer's length if that has more tokens, which adapters with new tokens need.
    """
    from peft import PeftModel

    location = {"revision": adapter.revision, "local_files_only": adapter.local or None}
    if options.placement is None:
        location["torch_device"] = options.device
    try:
        if len(tokenizer) > model.get_input_embeddings().weight.shape[0]:
            model.resize_token_embeddings(len(tokenizer))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            arguments = {
                name: value for name, value in location.items() if value is not None
            }
            wrapped = PeftModel.from_pretrained(model, adapter.where, **arguments)
        # Missing weights stay at their random or zero initial values, and the library only warns of
        # them.
        missing = [
            str(warning.message)
            for warning in caught
            if "missing adapter keys" in str(warning.message)
        ]
        if missing:
            raise ConfigurationError(
                f"The adapter '{adapter.where}' does not fit this model: it lacks"
                f" weights ({missing[0][:300]})."
            )
        if not (options.placement or options.quantisation or source.quantisation):
            return wrapped.merge_and_unload().eval()
        wrapped.requires_grad_(False)
        return wrapped.get_base_model().eval()
    except EvalwrightError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"The adapter '{adapter.where}' cannot be loaded on '{source.where}':"
            f" {library_error(error)}"
        ) from error


def source_arguments(
    source: Checkpoint, trust_remote_code: bool = False
) -> dict[str, Any]:
    """Return the arguments of `from_pretrained` that locate a source."""
    location = {
        "revision": source.revision,
        "subfolder": source.subfolder,
        "local_files_only": source.local or None,
    }
    location_arguments = {
        name: value for name, value in location.items() if value is not None
    }
    return {"trust_remote_code": trust_remote_code, **location_arguments}


def input_device(model: Any) -> str:
    """Return the device for token ids: where the embeddings are computed."""
    embeddings = model.get_input_embeddings()
    hook = getattr(embeddings, "_hf_hook", None)
    # Weights offloaded to memory or disk are on "meta"; the hook knows on which device they are
    # used.
    device = getattr(hook, "execution_device", None)
    if device is None:
        return str(embeddings.weight.device)
    return f"cuda:{device}" if isinstance(device, int) else str(device)


def is_spread(model: Any) -> bool:
    """Return whether parts of the model are on different devices, so that inner results are too."""
    return (
        len(
            {
                str(device)
                for device in (getattr(model, "hf_device_map", None) or {}).values()
            }
        )
        > 1
    )


def check_device(device: str) -> None:
    """Raise ConfigurationError if torch cannot use the requested accelerator."""
    kind = device.partition(":")[0]
    is_usable = {
        "cuda": torch.cuda.is_available,
        "mps": torch.backends.mps.is_available,
        "xpu": torch.xpu.is_available,
    }.get(kind)
    if is_usable is None or is_usable():
        return
    subject = "a GPU" if kind == "cuda" else f"'{kind}'"
    raise ConfigurationError(
        f"The model is to run on {subject}, but torch cannot use one here: install a"
        " build of torch for it, or say device=cpu."
    )


def library_error(error: Exception, about_code: str = _TRUST) -> str:
    """Describe a library's error in a sentence.

    `about_code` is added if the repository's code is needed.
    """
    text = " ".join(str(error).split())
    if "trust_remote_code" in text:
        return f"it needs code from its own repository{about_code}"
    return f"{type(error).__name__}: {text[:500]}"


def check_vocabulary(source: Checkpoint, tokenizer: Any, model: Any) -> None:
    """Raise if the tokenizer has tokens that the model lacks, which would crash it mid-run."""
    rows = model.get_input_embeddings().weight.shape[0]
    highest = max(tokenizer.get_vocab().values(), default=-1)
    if highest >= rows and not source.quantisation:
        raise ConfigurationError(
            f"The tokenizer has tokens up to {highest}, but the model '{source.where}'"
            f" knows {rows} of them only: they do not match."
        )


def _end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    declared = getattr(model.generation_config, "eos_token_id", None)
    ends = declared if isinstance(declared, list) else [declared]
    return frozenset(
        token for token in [*ends, tokenizer.eos_token_id] if token is not None
    )


def _start_tokens(source: Checkpoint, model: Any) -> tuple[int, ...]:
    """Return the decoder's start token and the forced next one (such as a language's).

    It is empty without an encoder.
    """
    if not model.config.is_encoder_decoder:
        return ()
    places = (model.generation_config, model.config)
    start, forced = (
        next(
            (
                int(token)
                for config in places
                if (token := getattr(config, name, None)) is not None
            ),
            None,
        )
        for name in ("decoder_start_token_id", "forced_bos_token_id")
    )
    if start is None:
        start = getattr(model.config, "bos_token_id", None)
    if start is None:
        raise ConfigurationError(
            f"The encoder-decoder model '{source.where}' does not define the first"
            " token of its decoder (decoder_start_token_id)."
        )
    return (start,) if forced is None else (start, forced)


def _with_prefix(
    rules: TokenRules, tokenizer: Any, prefix: str | int | None
) -> TokenRules:
    """Return the rules with the requested prefix token, by its number or its text."""
    if prefix is None:
        return rules
    token = prefix if isinstance(prefix, int) else tokenizer.get_vocab().get(prefix)
    if token is None or not 0 <= token < len(tokenizer):
        raise ConfigurationError(
            f"prefix_token={prefix!r} is not a token of this tokenizer."
        )
    return replace(rules, prefix_token=token)


def _first(*candidates: int | None) -> int:
    return next(candidate for candidate in candidates if candidate is not None)
