"""`hf/<hub repository or folder>[@revision]`: a language model run here by transformers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import AbilityError, ConfigurationError, Failure
from evalwright.core.requests import Ability, Generate, Request, arguments_of
from evalwright.core.responses import Response
from evalwright.models.arguments import one_of
from evalwright.models.local.hardware.machine import find_machine
from evalwright.models.local.hardware.presets import with_preset
from evalwright.models.local.hf.fitting import (
    Fit,
    choose_fit,
    model_size,
    weight_bytes,
)
from evalwright.models.local.hf.options import (
    GENERATE_ARGUMENTS,
    SCORING,
    TOKEN_RULES,
    HfOptions,
    as_bytes,
    as_count,
    as_flag,
    as_prefix_token,
    require_libraries,
    require_quantisation_libraries,
    resolve_device,
    resolve_dtype,
    resolve_placement,
    resolve_quantisation,
    resolve_template,
)
from evalwright.models.local.hf.quiet import logger, without_collection
from evalwright.models.local.hf.source import (
    Checkpoint,
    check_embedded,
    code_elsewhere,
    find_adapter,
    find_source,
    find_tokenizer,
)
from evalwright.models.local.model_files import (
    context_length,
    parameter_count,
    special_token_ids,
    special_tokens,
    special_tokens_of,
    weight_files,
)
from evalwright.models.local.tokens import DEFAULT_MAX_TOKENS, Reader
from evalwright.models.local.tool_formats import FORMATS
from evalwright.models.model_interface import (
    IMAGES,
    TOOL_OPTIONS,
    LocalModel,
    fingerprint_of,
)

if TYPE_CHECKING:
    from evalwright.models.local.hf.engine import TransformersAnswering


class TransformersModel(LocalModel):
    """A decoder-only or encoder-decoder model from the hub or a folder.

    It answers log-likelihood, rolling, generation and chat requests. Beams are transformers' own
    search. Log-probabilities are those of the model itself, before temperature, top_k, top_p and
    min_p.

    Args:
        name: a hub repository or a folder, with `@revision` for a branch, tag or commit.
        revision: branch, tag or commit of a hub repository.
        subfolder: the folder of the model within the repository.
        dtype: "auto" is float32 on a CPU, the checkpoint's own on a GPU.
        device: "auto" is a GPU if there is one.
        batch_size: most rows; "auto" fills the memory.
        memory: GiB beside the model that "auto" may fill; by default all that is free.
        max_length: the context in tokens, if not the model's own.
        tokenizer: another repository or folder.
        add_special_tokens: whether the tokenizer adds its BOS (default true).
        add_bos: whether to put a BOS in front in any case.
        prefix_token: the token that a text without context starts from, if not BOS or EOS.
        token_rules: "published" follows lm-evaluation-harness: it scores the BOS of rolling texts,
            cuts the left of prompts that are too long to answer, lets the tokenizer add its BOS to
            a rendered chat template, and drops a system message that the template refuses.
        use_fast_tokenizer: true only.
        chat_template: a file, or the name of one of the tokenizer's templates.
        enable_thinking: a variable for the template.
        chat_template_args: further variables for it.
        trust_remote_code: whether to run code from the repository.
        attn_implementation: "sdpa", "eager", "flash_attention_2", ...
        max_tokens: length of an answer if the task does not say.
        scoring: compute log-likelihoods by a prefix tree ("tree"), one input at a time ("plain"),
            or by the tree if the model allows it ("auto"); not part of the fingerprint.
        peft: an adapter (LoRA or similar), a repository or folder, with `@revision` if wanted.
        device_map: spread the model over devices, by accelerate: "auto", "balanced", ..., a device,
            or modules with devices.
        max_memory: limit by device ({0: "20GiB", "cpu": "60GiB"}).
        offload_folder: folder for parts that are offloaded to disk; changes no answer.
        quantization: "bitsandbytes-8bit" or "bitsandbytes-4bit", or a mapping with that as `method`
            and its settings.
        preset: settings for a kind of machine ("t4", "laptop", ...), for arguments left open.
        fit: whether to choose the most exact dtype and quantization that fit into the free memory.

    Raises:
        ConfigurationError: an argument cannot be used.
        MissingExtra: torch or transformers is not installed.
    """

    carries: frozenset[str] = frozenset(
        (
            "top_k",
            "min_p",
            "num_beams",
            "top_logprobs",
            "length_penalty",
            "early_stopping",
            "generation_arguments",
        )
    )

    def __init__(
        self,
        name: str,
        *,
        revision: str | None = None,
        dtype: str = "auto",
        device: str = "auto",
        batch_size: int | str = "auto",
        max_length: int | None = None,
        add_special_tokens: bool = True,
        add_bos: bool = False,
        chat_template: str | None = None,
        trust_remote_code: bool = False,
        tokenizer: str | None = None,
        attn_implementation: str | None = None,
        enable_thinking: bool | None = None,
        chat_template_args: Mapping[str, Any] | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        scoring: str = "auto",
        subfolder: str | None = None,
        peft: str | None = None,
        device_map: str | int | Mapping[str, Any] | None = None,
        max_memory: Mapping[Any, Any] | None = None,
        offload_folder: str | None = None,
        quantization: str | Mapping[str, Any] | None = None,
        prefix_token: str | int | None = None,
        use_fast_tokenizer: bool = True,
        token_rules: str = "corrected",
        memory: float | None = None,
        preset: str | None = None,
        fit: bool = False,
    ) -> None:
        require_libraries()
        if not as_flag("use_fast_tokenizer", use_fast_tokenizer):
            raise ConfigurationError(
                "use_fast_tokenizer=false has no effect: transformers 5 has one kind of"
                " tokenizer for each model. Leave it out."
            )
        self.name = f"hf/{name}" + (f"@{revision}" if revision else "")
        self._source = find_source(
            name, None if revision is None else str(revision), subfolder=subfolder
        )
        self._adapter: Checkpoint | None = (
            None if peft is None else find_adapter(str(peft))
        )
        self._tokenizer_source = find_tokenizer(tokenizer, self._source)
        if chat_template is not None and not isinstance(chat_template, str):
            raise ConfigurationError(
                "chat_template must be a file or the name of one of the tokenizer's"
                " templates. To send prompts as text, use --format text."
            )
        if chat_template_args is not None and not isinstance(
            chat_template_args, Mapping
        ):
            raise ConfigurationError(
                "chat_template_args must be a mapping, for example '{enable_thinking:"
                " false}'."
            )
        variables = dict(chat_template_args or {})
        if enable_thinking is not None:
            variables["enable_thinking"] = as_flag("enable_thinking", enable_thinking)
        placement = resolve_placement(
            device_map, max_memory, offload_folder, str(device)
        )
        filled = with_preset(
            preset,
            "hf",
            {
                "dtype": dtype,
                "device": device,
                "batch_size": batch_size,
                "max_length": max_length,
                "quantization": quantization,
                "memory": memory,
                "fit": fit,
            },
            context_length(self._source.config, {}),
        )
        on = _main_device(str(filled["device"]), placement)
        chosen_dtype, quantization = self._choose_format(filled, on, placement)
        batch_size = filled["batch_size"]
        max_length = filled["max_length"]
        memory = filled["memory"]
        self.options = HfOptions(
            dtype=chosen_dtype,
            device=on,
            batch_size=(
                None if batch_size == "auto" else as_count("batch_size", batch_size)
            ),
            max_length=(
                None if max_length is None else as_count("max_length", max_length)
            ),
            add_special_tokens=as_flag("add_special_tokens", add_special_tokens),
            add_bos=as_flag("add_bos", add_bos),
            chat_template=resolve_template(chat_template, self._tokenizer_source),
            template_arguments=variables,
            trust_remote_code=as_flag("trust_remote_code", trust_remote_code),
            attn_implementation=attn_implementation,
            max_tokens=as_count("max_tokens", max_tokens),
            scoring=one_of("scoring", scoring, SCORING),
            placement=placement,
            quantisation=resolve_quantisation(quantization, chosen_dtype, self._source),
            prefix_token=as_prefix_token(prefix_token),
            token_rules=one_of("token_rules", token_rules, TOKEN_RULES),
            memory=None if memory is None else as_bytes("memory", memory),
        )
        self._check_length()
        self._has_template = bool(
            self.options.chat_template or self._tokenizer_source.templates
        )
        abilities: set[Ability] = {"generate", "log-likelihood", "rolling"}
        self.abilities = frozenset(
            abilities | {"chat"} if self._has_template else abilities
        )
        if self._source.sees_images and self._has_template:
            self.carries |= {IMAGES}
        if self._mentions_tools():
            self.carries |= TOOL_OPTIONS
        self.fingerprint = fingerprint_of(self._identity())
        self._knows_tool_format: bool | None = None
        self._loaded_facts: dict[str, Any] = {}
        self._engine: TransformersAnswering | None = None

    def _choose_format(
        self, arguments: Mapping[str, Any], on: str, placement: Mapping[str, Any] | None
    ) -> tuple[str, str | Mapping[str, Any] | None]:
        """Return dtype and quantization, chosen to fit into memory if `fit` is set."""
        dtype = resolve_dtype(arguments["dtype"], on, self._source.config)
        quantization = arguments["quantization"]
        self._fit: Fit | None = None
        if (
            not as_flag("fit", arguments["fit"])
            or placement is not None
            or self._source.quantisation is not None
        ):
            return dtype, quantization
        longest = arguments["max_length"]
        size = model_size(
            self._source, None if longest is None else as_count("max_length", longest)
        )
        fixed = arguments["dtype"] != "auto"
        self._fit = choose_fit(
            self.name,
            size,
            find_machine(),
            device=on,
            dtype=dtype,
            fixed_dtype=fixed,
            quantisation=quantization,
        )
        return self._fit.dtype, (
            self._fit.quantisation if quantization is None else quantization
        )

    def _check_length(self) -> None:
        most = context_length(self._source.config, {})
        max_length = self.options.max_length
        # T5 and similar models use distances, not positions, so texts may be longer than in
        # training.
        relative = "relative_attention_num_buckets" in self._source.config
        if (
            most is not None
            and max_length is not None
            and max_length > most
            and not relative
        ):
            raise ConfigurationError(
                f"max_length={max_length} is more than the {most} tokens that '{self.name}'"
                " supports."
            )

    def _identity(self) -> dict[str, Any]:
        trusted = self.options.trust_remote_code
        code = code_elsewhere(self._source, self._tokenizer_source) if trusted else {}
        return {
            "backend": "hf",
            "source": dict(self._source.identity),
            "tokenizer": dict(self._tokenizer_source.identity),
            "quantisation": self._source.quantisation,
            **(
                {}
                if self._adapter is None
                else {"adapter": dict(self._adapter.identity)}
            ),
            **({"code": code} if code else {}),
            **self.options.identity(),
        }

    def describe(self) -> dict[str, Any]:
        """Describe the model.

        Parameters and context length of a hub model are known once it has been loaded.
        """
        source = self._source
        return {
            **super().describe(),
            "backend": "transformers",
            "architecture": next(iter(source.config.get("architectures") or []), None),
            "revision": source.revision,
            "parameters": parameter_count(source.folder) if source.folder else None,
            **(
                {} if self._loaded_facts else {"special_tokens": self._special_tokens()}
            ),
            "dtype": self.options.dtype,
            "device": self.options.device,
            "quantisation": self.options.quantisation or source.quantisation,
            **self._extras(),
            "context_length": (
                self.options.max_length
                or context_length(
                    source.config, self._tokenizer_source.tokenizer_config
                )
            ),
            "chat_template": self._has_template,
            **self._template(),
            "scoring": {"path": self.options.scoring},
            **self._loaded_facts,
            **self._engine_facts(),
        }

    def _engine_facts(self) -> dict[str, Any]:
        """Describe how the loaded model computes; nothing if it is not loaded."""
        if self._engine is None:
            return {}
        return {
            "scoring": self._engine.describe_scoring(),
            **self._engine.describe_products(),
        }

    def _template(self) -> dict[str, Any]:
        """Return the chat template and its variables.

        They allow showing a recorded conversation as the text that was sent.
        """
        source = self._tokenizer_source
        options = self.options
        text = options.chat_template or source.templates.get("default")
        variables = {
            **special_tokens(source.tokenizer_config),
            **options.template_arguments,
        }
        return {"template": {"source": text, "variables": variables}} if text else {}

    def _special_tokens(self) -> dict[str, list[Any]]:
        source = self._tokenizer_source
        return special_token_ids(source.folder, source.tokenizer_config)

    def _extras(self) -> dict[str, Any]:
        """Return parts of the description that only some models have."""
        adapter = self._adapter
        placement = self.options.placement
        extras: dict[str, Any] = (
            {} if self._fit is None else {"fit": self._fit.describe()}
        )
        if adapter is not None:
            extras["adapter"] = {"where": adapter.where, "revision": adapter.revision}
            extras["adapter"]["kind"] = adapter.adapter.get("peft_type")
        if placement is not None:
            extras["device_map"] = placement["device_map"]
        return extras

    def check(self) -> None:
        """Raise if the files show that the model cannot be used.

        Only the tokenizer is loaded, and only if add_bos needs it.
        """
        config = self._source.config
        names = config.get("architectures") or []
        if names and not any("LM" in name or "Generation" in name for name in names):
            raise AbilityError(
                f"'{self.name}' is a {names[0]}, which is not a language model that"
                " generates text."
            )
        if self._source.folder and not weight_files(self._source.folder):
            raise ConfigurationError(
                f"The model folder '{self._source.where}' has no weights"
                " (*.safetensors)."
            )
        check_embedded(self.name, self._source)
        require_quantisation_libraries(
            self.name, self._source, self.options.quantisation
        )
        if self.options.add_bos:
            self._check_begin()

    def _check_begin(self) -> None:
        """Raise if the tokenizer lacks the BOS of add_bos; under published rules, only log it."""
        from evalwright.models.local.hf.loading import lacks_begin, load_tokenizer

        tokenizer = load_tokenizer(
            self._tokenizer_source, self.options.trust_remote_code
        )
        if lacks_begin(tokenizer, self._tokenizer_source, self.options):
            logger.warning(
                "%s: the tokenizer has no BOS token, so texts begin without one, as in"
                " published runs.",
                self.name,
            )

    def try_out(self) -> dict[str, Any]:
        """Report how requests are computed, by trying them on a small copy (see `small_copy`)."""
        from evalwright.models.local.hf.small_copy import try_path

        if self._engine is not None:
            return {"scoring": self._engine.describe_scoring()}
        return try_path(self._source, self.options)

    def refuses(self, request: Request) -> str | None:
        """Refuse, besides the usual, beam sampling and arguments unknown to generate()."""
        if (
            isinstance(request, Generate)
            and request.num_beams > 1
            and request.temperature != 0
        ):
            return (
                f"'{self.name}' draws no beams: set the temperature to 0, or leave"
                " num_beams out."
            )
        for name in arguments_of(request):
            if name not in GENERATE_ARGUMENTS:
                taken_names = ", ".join(sorted(GENERATE_ARGUMENTS))
                return (
                    f"'{self.name}' does not take {name} (it takes: {taken_names}). Leave it"
                    " out."
                )
        return super().refuses(request) or self.refuses_tools(request)

    def cannot_carry(self, option: str) -> str:
        """Return the sentence about an option that the model does not support."""
        if option not in TOOL_OPTIONS:
            return super().cannot_carry(option)
        what_lacks = (
            "its chat template has no place for them"
            if self._has_template
            else "it has no chat template"
        )
        return (
            f"'{self.name}' does not take tools: {what_lacks}. Use a model that was made to"
            " call tools, or a template with `tools` (-M chat_template=FILE)."
        )

    def _mentions_tools(self) -> bool:
        """Return whether the chat template has a place for tools."""
        sources = (
            [self.options.chat_template]
            if self.options.chat_template
            else self._tokenizer_source.templates.values()
        )
        return any("tools" in source for source in sources)

    def refuses_tools(self, request: Request) -> str | None:
        """Return why a request with tools cannot be answered; None if it can, or has none."""
        if not isinstance(request, Generate) or not request.tools:
            return None
        if request.tool_choice not in (None, "auto", "none"):
            return (
                f"'{self.name}' cannot be made to call a tool: its text is free. Leave"
                " tool_choice out, or set it to auto or none."
            )
        if request.parallel_tool_calls is False:
            return (
                f"'{self.name}' cannot be kept from several calls in a reply: its text is"
                " free. Leave parallel_tool_calls out."
            )
        if self._knows_tool_format is None:
            self._knows_tool_format = self.reader().tool_format() is not None
        if self._knows_tool_format:
            return None
        known_formats = ", ".join(tool_format.name for tool_format in FORMATS)
        return (
            f"The chat template of '{self.name}' writes calls of tools in no form that is"
            f" known here (known: {known_formats}). Serve the model with vLLM or llama.cpp and"
            " evaluate that endpoint, which knows its form."
        )

    def weight_bytes(self) -> int | None:
        """Return how much memory the weights take at least; None if that is not known."""
        return weight_bytes(self._source, self.options.dtype, self.options.quantisation)

    def reader(self) -> Reader:
        """Return how the model reads prompts; only the tokenizer is loaded."""
        from evalwright.models.local.hf.loading import load_reader

        return load_reader(self._source, self._tokenizer_source, self.options)

    def load(self) -> None:
        """Load weights and tokenizer.

        Raises:
            ConfigurationError: an argument cannot be used.
            ModelError: the model cannot be loaded.
        """
        if self._engine is None:
            with without_collection():
                self._engine = self._loaded()

    def _loaded(self) -> TransformersAnswering:
        from evalwright.models.local.hf.engine import TransformersAnswering
        from evalwright.models.local.hf.loading import load
        from evalwright.models.local.hf.model_checks import ModelChecks

        check_embedded(self.name, self._source)
        require_quantisation_libraries(
            self.name, self._source, self.options.quantisation
        )
        loaded = load(self._source, self._tokenizer_source, self.options, self._adapter)
        for source in (self._source, self._tokenizer_source, self._adapter):
            if source is not None:
                source.require_unchanged()
        options = self.options
        identity = [self.fingerprint, options.scoring, options.placement]
        checks = ModelChecks(identity, loaded.device, options.memory)
        # What was fitted into the memory has to stay within what was computed.
        packs = self._fit is None
        engine = TransformersAnswering(loaded, options, self.name, checks, packs=packs)
        self._loaded_facts = {
            "parameters": loaded.model.num_parameters(),
            "context_length": loaded.reader.rules.max_length,
            "special_tokens": special_tokens_of(loaded.encoder.tokenizer),
        }
        return engine

    def unload(self) -> None:
        """Free the weights; the model can be loaded again."""
        if self._engine is not None:
            from evalwright.models.local.hf.batching import free_memory

            self._loaded_facts |= self._engine_facts()
            self._engine = None
            free_memory()

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Yield each answer when its batch is done: likelihoods, then texts, longest first."""
        self.load()
        assert self._engine is not None
        yield from self._engine.answer(requests)


def _main_device(device: str, placement: Mapping[str, Any] | None) -> str:
    """Return the device that decides the dtype."""
    device_map = None if placement is None else placement["device_map"]
    on_cpu = isinstance(device_map, Mapping) and set(device_map.values()) <= {
        "cpu",
        "disk",
    }
    return "cpu" if on_cpu else resolve_device(device)
