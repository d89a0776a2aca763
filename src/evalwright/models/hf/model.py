"""`hf/<hub repository or local folder>[@revision]`: a causal language model that transformers runs in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import (
    AbilityError,
    ConfigurationError,
    Failure,
    MissingExtra,
    ModelError,
    RequestError,
)
from evalwright.core.requests import Ability, Generate, LogLikelihood, Request, RollingLogLikelihood
from evalwright.core.responses import Response, Usage
from evalwright.models.base import LocalModel, fingerprint_of
from evalwright.models.hf.options import (
    Options,
    as_bytes,
    as_count,
    as_flag,
    as_scoring,
    require_libraries,
    resolve_device,
    resolve_dtype,
    resolve_template,
)
from evalwright.models.hf.source import context_length, find_source, parameter_count, weight_files
from evalwright.models.registry import model
from evalwright.models.tokens import (
    DEFAULT_MAX_TOKENS,
    TRUNCATED,
    Pair,
    TokenRules,
    encode_pair,
    encode_text,
    rolling_pairs,
    room_for_answer,
    truncate_pair,
)

if TYPE_CHECKING:
    from evalwright.models.hf.generation import Generator, Job
    from evalwright.models.hf.loading import Loaded
    from evalwright.models.hf.prompts import ChatRenderer
    from evalwright.models.hf.scoring import LogitReader, PairScorer, Scored

Answered = Iterator[tuple[int, Response | Failure]]

_PREPARED = 512
"""Requests whose texts are turned into tokens together."""


@model("hf")
class TransformersModel(LocalModel):
    """A causal language model from the hub or a folder: log-likelihood, rolling log-likelihood, generation, chat.

    revision: branch, tag or commit of a hub repository. dtype: "auto" is float32 on a CPU, the checkpoint's own on a GPU.
    device: "auto" is a GPU where there is one. batch_size: rows at the most; "auto" fills the memory.
    memory: GiB beside the model that "auto" may fill, where that is not all that is free.
    max_length: the context in tokens, where the model's own is not wanted. tokenizer: another repository or folder.
    add_special_tokens: let the tokenizer add its BOS (default true). add_bos: put a BOS in front in any case.
    chat_template: a file, or the name of one of the tokenizer's. enable_thinking, chat_template_args: variables for it.
    trust_remote_code: run code from the repository. attn_implementation: "sdpa", "eager", "flash_attention_2", ...
    max_tokens: how long an answer may be where the task does not say.
    scoring: log-likelihoods by a prefix tree ("tree"), one input at a time ("plain"), or the former where the model can
    ("auto"). verify: score that many requests both ways and say how they compare. Both are not part of the fingerprint.

    Raises ConfigurationError for what cannot be used, MissingExtra without torch or transformers.
    """

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
        verify: int = 0,
        memory: float | None = None,
    ) -> None:
        require_libraries()
        self.name = f"hf/{name}" + (f"@{revision}" if revision else "")
        self._source = find_source(name, None if revision is None else str(revision))
        self._tokenizer_source = self._source
        if tokenizer is not None:
            where, _, at = tokenizer.partition("@")
            self._tokenizer_source = find_source(where, at or None, needs="tokenizer_config.json")
        if chat_template is not None and not isinstance(chat_template, str):
            raise ConfigurationError(
                "chat_template must be a file or the name of one of the tokenizer's templates. To send prompts as text, "
                "use --format text."
            )
        if chat_template_args is not None and not isinstance(chat_template_args, Mapping):
            raise ConfigurationError(
                "chat_template_args must be a mapping, for example '{enable_thinking: false}'."
            )
        variables = dict(chat_template_args or {})
        if enable_thinking is not None:
            variables["enable_thinking"] = as_flag("enable_thinking", enable_thinking)
        on = resolve_device(str(device))
        self.options = Options(
            dtype=resolve_dtype(dtype, on, self._source.config),
            device=on,
            batch_size=None if batch_size == "auto" else as_count("batch_size", batch_size),
            max_length=None if max_length is None else as_count("max_length", max_length),
            add_special_tokens=as_flag("add_special_tokens", add_special_tokens),
            add_bos=as_flag("add_bos", add_bos),
            chat_template=resolve_template(chat_template, self._tokenizer_source),
            template_arguments=variables,
            trust_remote_code=as_flag("trust_remote_code", trust_remote_code),
            attn_implementation=attn_implementation,
            max_tokens=as_count("max_tokens", max_tokens),
            scoring=as_scoring(scoring),
            verify=0 if verify in (0, "0") else as_count("verify", verify),
            memory=None if memory is None else as_bytes("memory", memory),
        )
        self._check_length()
        self._has_template = bool(self.options.chat_template or self._tokenizer_source.templates)
        abilities: set[Ability] = {"generate", "log-likelihood", "rolling"}
        self.abilities = frozenset(abilities | {"chat"} if self._has_template else abilities)
        self.fingerprint = fingerprint_of(self._identity())
        self._known: dict[str, Any] = {}
        self._engine: _Engine | None = None

    def _check_length(self) -> None:
        most, asked = context_length(self._source.config, {}), self.options.max_length
        if most is not None and asked is not None and asked > most:
            raise ConfigurationError(
                f"max_length={asked} is more than the {most} tokens that '{self.name}' was made for."
            )

    def _identity(self) -> dict[str, Any]:
        return {
            "backend": "hf",
            "source": dict(self._source.identity),
            "tokenizer": dict(self._tokenizer_source.identity),
            "quantisation": self._source.quantisation,
            **self.options.identity(),
        }

    def describe(self) -> dict[str, Any]:
        """What it is; parameters and context of a hub model are known once it was loaded."""
        source = self._source
        return {
            **super().describe(),
            "backend": "transformers",
            "architecture": next(iter(source.config.get("architectures") or []), None),
            "revision": source.revision,
            "parameters": parameter_count(source.folder) if source.folder else None,
            "dtype": self.options.dtype,
            "device": self.options.device,
            "quantisation": source.quantisation,
            "context_length": self.options.max_length
            or context_length(source.config, self._tokenizer_source.tokenizer_config),
            "chat_template": self._has_template,
            "scoring": self._engine.describe_scoring() if self._engine else {"path": self.options.scoring},
            **self._known,
        }

    def check(self) -> None:
        """Raise where the files show that the model cannot be used; nothing is loaded."""
        config = self._source.config
        if config.get("is_encoder_decoder"):
            raise AbilityError(
                f"'{self.name}' is an encoder-decoder model; only decoder-only language models can be used."
            )
        names = config.get("architectures") or []
        if names and not any("LM" in name or "Generation" in name for name in names):
            raise AbilityError(
                f"'{self.name}' is a {names[0]}, which is not a language model that can write."
            )
        if self._source.folder and not weight_files(self._source.folder):
            raise ConfigurationError(
                f"The model folder '{self._source.where}' holds no weights (*.safetensors)."
            )
        if self._source.quantisation and find_spec("accelerate") is None:
            raise MissingExtra(f"The quantised model '{self.name}'", "hf", "accelerate")

    def load(self) -> None:
        """Load weights and tokenizer. Raises ConfigurationError or ModelError."""
        if self._engine is None:
            from evalwright.models.hf.loading import load

            loaded = load(self._source, self._tokenizer_source, self.options)
            self._engine = _Engine(loaded, self.options, self.name)
            self._known.pop("scoring", None)
            self._known = {
                "parameters": loaded.model.num_parameters(),
                "context_length": loaded.rules.max_length,
            }

    def unload(self) -> None:
        """Free the weights; the model can be loaded again."""
        if self._engine is not None:
            from evalwright.models.hf.batching import free_memory

            self._known["scoring"] = self._engine.describe_scoring()
            self._engine = None
            free_memory()

    def answer_batch(self, requests: Sequence[Request]) -> Answered:
        """Yield each answer when its batch is done: likelihoods first, then generations; longest first among each."""
        self.load()
        assert self._engine is not None
        yield from self._engine.answer(requests)


class _Engine:
    """A loaded model with what turns requests into tokens and results into responses."""

    def __init__(self, loaded: Loaded, options: Options, name: str) -> None:
        from evalwright.models.hf.batching import Batcher, generation_budget, scoring_budget
        from evalwright.models.hf.generation import Generator
        from evalwright.models.hf.prompts import ChatRenderer
        from evalwright.models.hf.scoring import LogitReader, PlainScorer

        model, device = loaded.model, loaded.device
        # Who names a batch size has measured it, so no budget of ours stands in its way.
        budgets = (
            (scoring_budget(model, device, options.memory), generation_budget(model, device, options.memory))
            if options.batch_size is None
            else (1 << 62, 1 << 62)
        )
        self.loaded = loaded
        self.renderer: ChatRenderer = ChatRenderer(
            loaded.encoder.tokenizer, options.chat_template, options.template_arguments
        )
        reader = LogitReader(model, device)
        self.scorer: PairScorer = PlainScorer(reader, Batcher(options.batch_size, budgets[0]), device)
        if options.scoring != "plain":
            self.scorer = _tree_scorer(loaded, options, name, reader, self.scorer)
        self.generator: Generator = Generator(loaded, Batcher(options.batch_size, budgets[1]))
        self._max_tokens = options.max_tokens

    def describe_scoring(self) -> dict[str, Any]:
        """Which way log-likelihoods are computed, and how much that saved."""
        from evalwright.models.hf.tree_scoring import TreeScorer

        return self.scorer.describe() if isinstance(self.scorer, TreeScorer) else {"path": "plain"}

    def answer(self, requests: Sequence[Request]) -> Answered:
        scored: list[tuple[int, list[Pair], bool]] = []
        jobs: list[tuple[int, Job]] = []
        for index, request in enumerate(requests):
            if index % _PREPARED == 0:
                self.loaded.encoder.prepare(self._texts(requests[index : index + _PREPARED]))
            try:
                if isinstance(request, LogLikelihood):
                    pair, cut = self._pair(request)
                    scored.append((index, [pair], cut))
                elif isinstance(request, RollingLogLikelihood):
                    pairs = rolling_pairs(self.loaded.encoder, self.loaded.rules, request.text)
                    scored.append((index, pairs, False))
                elif isinstance(request, Generate):
                    jobs.append((index, self._job(request)))
                else:
                    yield index, _cannot(request)
            except RequestError as error:
                yield index, error.as_failure()
            except Exception as error:  # a tokenizer can raise anything, for half a surrogate pair, say
                reason = f"{type(error).__name__}: {error}"
                yield index, ModelError(f"The request cannot be turned into tokens ({reason}).").as_failure()
        self.loaded.encoder.prepare(())
        yield from self._likelihoods(scored)
        if jobs:
            for place, response in self.generator.generate([job for _, job in jobs]):
                yield jobs[place][0], response

    def _likelihoods(self, scored: Sequence[tuple[int, list[Pair], bool]]) -> Answered:
        """A request is answered when the last of its windows is."""
        pairs = [pair for _, own, _ in scored for pair in own]
        owners = [place for place, (_, own, _) in enumerate(scored) for _ in own]
        parts: list[dict[int, Scored]] = [{} for _ in scored]
        failed: set[int] = set()
        for index, own, _ in scored:
            if not own:
                yield index, Response(log_likelihood=0.0, is_greedy=True, tokens_scored=0)
        for pair, outcome in self.scorer.score(pairs) if pairs else ():
            place = owners[pair]
            index, own, cut = scored[place]
            if place in failed:
                continue
            if isinstance(outcome, Failure):
                failed.add(place)
                yield index, outcome
                continue
            parts[place][pair] = outcome
            if len(parts[place]) == len(own):
                yield index, _summed([parts[place].pop(i) for i in sorted(parts[place])], own, cut)

    def _pair(self, request: LogLikelihood) -> tuple[Pair, bool]:
        text, rules = self._rendered(request.context)
        context, continuation = encode_pair(self.loaded.encoder, rules, text, request.continuation)
        kept = truncate_pair(context, continuation, rules.max_length)
        return kept, len(kept[0]) < len(context)

    def _texts(self, requests: Sequence[Request]) -> Iterator[tuple[str, bool]]:
        """What `encode_pair` and `rolling_pairs` will encode for plain texts; it costs time only where this is wrong."""
        special = self.loaded.rules.add_special_tokens
        for request in requests:
            if isinstance(request, RollingLogLikelihood):
                yield request.text, False
            elif isinstance(request, LogLikelihood) and isinstance(request.context, str):
                whole = request.context + request.continuation
                kept = request.context.rstrip()
                yield whole, bool(kept) and special
                if kept:
                    yield kept, special

    def _job(self, request: Generate) -> Job:
        from evalwright.models.hf.generation import Job

        text, rules = self._rendered(request.prompt)
        tokens = encode_text(self.loaded.encoder, rules, text)
        if not tokens and rules.prefix_token is not None:
            tokens = [rules.prefix_token]
        limit = self._max_tokens if request.max_tokens is None else request.max_tokens
        return Job(tokens, room_for_answer(len(tokens), limit, rules.max_length), request)

    def _rendered(self, prompt: Any) -> tuple[str, TokenRules]:
        text, complete = self.renderer.render(prompt)
        rules = self.loaded.rules
        return text, rules.without_special_tokens() if complete else rules


def _tree_scorer(
    loaded: Loaded, options: Options, name: str, reader: LogitReader, plain: PairScorer
) -> PairScorer:
    from evalwright.models.hf.batching import scoring_budget, stored_budget
    from evalwright.models.hf.tree_forward import TreeForward
    from evalwright.models.hf.tree_scoring import Budget, TreeScorer

    tokens = scoring_budget(loaded.model, loaded.device, options.memory)
    budget = Budget(
        tokens if loaded.device.startswith("cuda") else min(tokens, 2048),
        options.batch_size,
        stored_budget(loaded.device, options.memory),
    )
    return TreeScorer(
        TreeForward(loaded.model, reader, loaded.device),
        reader,
        plain,
        budget,
        name=name,
        number_bytes=loaded.model.dtype.itemsize,
        insist=options.scoring == "tree",
        verify=options.verify,
    )


def _summed(parts: Sequence[Scored], pairs: Sequence[Pair], cut: bool) -> Response:
    return Response(
        log_likelihood=sum(part.log_likelihood for part in parts),
        is_greedy=all(part.is_greedy for part in parts),
        tokens_scored=sum(part.tokens for part in parts),
        finish_reason=TRUNCATED if cut else "",
        usage=Usage(input_tokens=sum(len(context) + len(continuation) for context, continuation in pairs)),
    )


def _cannot(request: Request) -> Failure:
    return Failure(
        "request rejected", "model", f"A language model of transformers cannot answer '{request.ability}'."
    )
