"""Base class of model classes that call a server: `TemplateAPI`."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import os
import time
from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib import import_module
from io import BytesIO
from itertools import count
from typing import Any, Literal, NamedTuple

from evalwright.compat.lm_eval.api.instance import Instance
from evalwright.compat.lm_eval.api.model import TemplateLM
from evalwright.compat.lm_eval.models.utils import Collator, chunks, configure_pad_token
from evalwright.compat.lm_eval.server_calls import (
    MAX_REPLY_BYTES,
    Refused,
    call_json,
    ssl_context,
)
from evalwright.compat.lm_eval.utils import (
    RemoteTokenizer,
    eval_logger,
    get_rolling_token_windows,
    make_disjoint_window,
)

LMEVAL_MODEL_NONE_ANSWER_PLACEHOLDER = os.environ.get(
    "LMEVAL_MODEL_NONE_ANSWER_PLACEHOLDER", ""
)
"""Replaces a reply without text."""

LogLikelihoodInputs = tuple[tuple[str, str], list[int], list[int]]


class JsonChatStr(NamedTuple):
    """A conversation as JSON, sent to the server unchanged."""

    prompt: str

    def encode(self, encoding: str) -> bytes:
        """The JSON as bytes."""
        return self.prompt.encode(encoding)


def create_image_prompt(imgs: list[Any], chat: Any, fmt: str = "PNG") -> Any:
    """Insert PIL images before the text of a conversation's last message."""
    blocks: list[dict[str, Any]] = []
    for image in imgs:
        buffer = BytesIO()
        image.save(buffer, format=fmt)
        encoded = base64.b64encode(buffer.getvalue()).decode()
        address = {
            "url": f"data:image/{fmt.lower()};base64,{encoded}",
            "detail": "auto",
        }
        blocks.append({"type": "image_url", "image_url": address})
    last = chat[-1]
    content = last["content"]
    last["content"] = blocks + (
        content if isinstance(content, list) else [{"type": "text", "text": content}]
    )
    last.pop("type", None)
    return chat


async def _read(response: Any) -> bytes:
    """Read a reply's bytes. Raises ValueError if it is too long."""
    reply = bytearray()
    async for chunk in response.content.iter_any():
        reply += chunk
        if len(reply) > MAX_REPLY_BYTES:
            raise ValueError(f"The reply is longer than {MAX_REPLY_BYTES:,} bytes.")
    return bytes(reply)


class TemplateAPI(TemplateLM):
    """A model behind a server, to derive from.

    Subclasses define `_create_payload`, `parse_generations`, and `parse_logprobs` to score. They
    may call and override each step, so sending, batches and retries are steps of this class, as in
    lm_eval; a client that nobody derives from is sent by our own models (`client_bodies`).

    Args:
        model, pretrained: the model's name.
        base_url: the full address of the endpoint.
        tokenizer_backend: "huggingface", "tiktoken", "remote" (the server's own) or None; needed to
            score.
        tokenized_requests: send token ids instead of text.
        num_concurrent: requests in flight at a time.
        batch_size: prompts per request.
        max_retries: attempts per request.
        max_length: the context length, of which one token is for generation.
        timeout: seconds per request.
        header: replaces the header with `api_key`.
    """

    MULTIMODAL = True

    def __init__(
        self,
        model: str | None = None,
        pretrained: str | None = None,
        base_url: str | None = None,
        tokenizer: str | None = None,
        tokenizer_backend: (
            Literal["tiktoken", "huggingface", "remote", "None", "none"] | None
        ) = "huggingface",
        truncate: bool = False,
        num_concurrent: int = 1,
        max_retries: int = 3,
        max_gen_toks: int = 256,
        batch_size: str | int = 1,
        seed: int = 1234,
        max_length: int | None = 2048,
        add_bos_token: bool = False,
        custom_prefix_token_id: int | None = None,
        tokenized_requests: bool = True,
        trust_remote_code: bool = False,
        revision: str | None = "main",
        use_fast_tokenizer: bool = True,
        verify_certificate: bool = True,
        ca_cert_path: str | None = None,
        auth_token: str | None = None,
        eos_string: str | None = None,
        timeout: int = 300,
        header: dict[str, str] | None = None,
        max_images: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.model: Any = model or pretrained
        self.base_url = base_url
        self._header = header
        self.auth_token = auth_token
        self._batch_size = 1 if "auto" in str(batch_size) else int(batch_size)
        self._truncate = truncate
        self._eos_string = eos_string
        self._max_gen_toks = int(max_gen_toks)
        self._seed = int(seed)
        self.timeout = int(timeout)
        self.max_length = int(max_length or 2048) - 1
        self._concurrent = int(num_concurrent)
        self.max_images = int(max_images)
        self.tokenizer_backend = (
            None if tokenizer_backend in ("None", "none") else tokenizer_backend
        )
        self.add_bos_token = add_bos_token
        self.custom_prefix_token_id = custom_prefix_token_id
        self.tokenized_requests = (
            tokenized_requests and self.tokenizer_backend is not None
        )
        self.max_retries = max(int(max_retries), 1)
        self.verify_certificate = verify_certificate
        self.ca_cert_path = ca_cert_path
        loading = {
            "trust_remote_code": trust_remote_code,
            "revision": revision,
            "use_fast": use_fast_tokenizer,
        }
        self.tokenizer = self._open_tokenizer(tokenizer, loading)

    def _open_tokenizer(self, name: str | None, loading: dict[str, Any]) -> Any:
        if self.tokenizer_backend is None:
            return None
        if name is None and self.tokenizer_backend == "remote":
            if not self.base_url:
                raise ValueError("tokenizer_backend=remote needs base_url.")
            return RemoteTokenizer(
                self.base_url,
                self.timeout,
                self.verify_certificate,
                self.ca_cert_path,
                self.auth_token,
            )
        if name is None and self.tokenizer_backend == "tiktoken":
            try:
                tiktoken = import_module("tiktoken")
            except ImportError:
                raise ModuleNotFoundError(
                    "tokenizer_backend=tiktoken needs the package tiktoken: pip install"
                    " tiktoken"
                ) from None
            return tiktoken.encoding_for_model(self.model)
        import transformers

        loaded = transformers.AutoTokenizer.from_pretrained(
            name or self.model, **loading
        )
        return configure_pad_token(loaded) if name is None else loaded

    def _create_payload(
        self,
        messages: Any,
        *,
        generate: bool = True,
        gen_kwargs: dict[str, Any] | None = None,
        seed: int = 1234,
        eos: str | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Build the request body for texts, token ids or messages."""
        raise NotImplementedError

    @staticmethod
    def parse_logprobs(
        outputs: Any,
        tokens: list[list[int]] | None = None,
        ctxlens: list[int] | None = None,
        **kwargs: Any,
    ) -> list[tuple[float, bool]]:
        """Extract (log-probability, whether greedy) of each continuation from the replies.

        ctxlens: the number of context tokens of each.
        """
        raise NotImplementedError

    @staticmethod
    def parse_generations(outputs: Any, **kwargs: Any) -> list[str]:
        """Extract the texts from the replies."""
        raise NotImplementedError

    @cached_property
    def api_key(self) -> str:
        """The server's API key."""
        return ""

    @cached_property
    def header(self) -> dict[str, str]:
        """The headers of a request."""
        return self._header or {"Authorization": f"Bearer {self.api_key}"}

    @property
    def tokenizer_name(self) -> str:
        """Unknown, so empty."""
        return ""

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> Any:
        """Render a conversation with the tokenizer's template; kept as messages if text is sent."""
        if self.tokenizer_backend == "huggingface" and self.tokenized_requests:
            return self.tokenizer.apply_chat_template(
                chat_history,
                tokenize=False,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=not add_generation_prompt,
            )
        if self.tokenizer_backend == "remote" and self.tokenized_requests:
            return chat_history
        return JsonChatStr(json.dumps(chat_history, ensure_ascii=False))

    @cached_property
    def eot_token_id(self) -> Any:
        """The token that ends a text."""
        name = "eot_token" if self.tokenizer_backend == "tiktoken" else "eos_token_id"
        return None if self.tokenizer is None else getattr(self.tokenizer, name)

    @cached_property
    def eos_string(self) -> Any:
        """The text that ends a text."""
        if self._eos_string or self.tokenizer is None:
            return self._eos_string or None
        if self.tokenizer_backend == "tiktoken":
            return str(self.tokenizer.decode([self.tokenizer.eot_token]))
        return self.tokenizer.eos_token

    @cached_property
    def prefix_token_id(self) -> Any:
        """The token from which a text's first token is predicted."""
        if self.tokenizer is None:
            return None
        if self.custom_prefix_token_id is not None:
            return self.custom_prefix_token_id
        first = getattr(self.tokenizer, "bos_token_id", None)
        return self.eot_token_id if first is None else first

    def tok_encode(  # type: ignore[override]  # the order of arguments is theirs
        self,
        string: Any,
        left_truncate_len: int | None = None,
        add_special_tokens: bool | None = False,
        truncation: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Tokenise one text or several; special tokens only on request or with `add_bos_token`."""
        if self.tokenizer_backend is None:
            return [string]
        single = isinstance(string, str)
        texts = [string] if single else list(string)
        if self.tokenizer_backend == "huggingface":
            encoded = self.tokenizer(
                texts,
                add_special_tokens=add_special_tokens or self.add_bos_token,
                truncation=truncation,
                return_attention_mask=False,
            ).input_ids
        else:
            encoded = [self.tokenizer.encode(text) for text in texts]
        if left_truncate_len:
            encoded = [tokens[-left_truncate_len:] for tokens in encoded]
        return encoded[0] if single else encoded

    def decode_batch(self, tokens: list[list[int]]) -> list[str]:
        """The texts of tokens."""
        name = (
            "decode_batch" if self.tokenizer_backend == "tiktoken" else "batch_decode"
        )
        return list(getattr(self.tokenizer, name)(tokens))

    def create_message(self, messages: Sequence[Any], generate: bool = False) -> Any:
        """Convert a batch of prompts to messages, token ids, texts or a single text."""
        if isinstance(messages[0], JsonChatStr):
            assert self._batch_size == 1, (
                "Conversations are sent one by one: set batch_size=1."
            )
            return json.loads(messages[0].prompt)
        if self.tokenized_requests:
            return messages
        if isinstance(messages[0][0], int):
            messages = self.decode_batch(list(messages))
        return messages[0] if self._batch_size <= 1 else messages

    def _payload(
        self, messages: Sequence[Any], generate: bool, gen_kwargs: Any, options: Any
    ) -> Any:
        return self._create_payload(
            self.create_message(messages),
            generate=generate,
            gen_kwargs=copy.deepcopy(
                gen_kwargs
            ),  # a class may take from it what it has read
            seed=self._seed,
            eos=self.eos_string,
            **options,
        )

    def _trusted(self) -> bool | str:
        return (self.ca_cert_path or True) if self.verify_certificate else False

    def model_call(
        self,
        messages: Sequence[Any],
        *,
        generate: bool = True,
        gen_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Send one batch and return the server's JSON. Raises Refused, OSError, ValueError."""
        body = self._payload(messages, generate, gen_kwargs, kwargs)
        return call_json(
            str(self.base_url), body, self.header, self.timeout, self._trusted()
        )

    async def amodel_call(
        self,
        session: Any,
        sem: asyncio.Semaphore,
        messages: Sequence[Any],
        *,
        generate: bool = True,
        cache_keys: list[Any] | None = None,
        ctxlens: list[int] | None = None,
        gen_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[Any]:
        """Send one batch beside others and give its results. session: an aiohttp.ClientSession.

        Raises as `model_call`.
        """
        body = self._payload(messages, generate, gen_kwargs, kwargs)
        async with (
            sem,
            session.post(
                self.base_url, json=body, headers=self.header, allow_redirects=False
            ) as response,
        ):
            if not response.ok or response.status >= 300:
                text = (await response.content.read(4096)).decode(errors="replace")
                raise Refused(
                    response.status, text, response.headers.get("Retry-After")
                )
            outputs = json.loads(await _read(response))
        scoring_inputs = (
            {} if generate else {"tokens": list(messages), "ctxlens": ctxlens}
        )
        return self._parse_reply(
            outputs, generate, cache_keys or [None] * len(messages), **scoring_inputs
        )

    def _parse_reply(
        self, outputs: Any, generate: bool, keys: Sequence[Any], **scoring_inputs: Any
    ) -> list[Any]:
        """Parse the server's reply and tell the cache of results with a key.

        Windows of a rolling text have no key.
        """
        answers: list[Any] = (
            self.parse_generations if generate else self.parse_logprobs
        )(outputs=outputs, **scoring_inputs)
        for answer, key in zip(answers, keys, strict=True):
            if key is not None and answer is not None:
                self.cache_hook.add_partial(
                    "generate_until" if generate else "loglikelihood", key, answer
                )
        return [
            LMEVAL_MODEL_NONE_ANSWER_PLACEHOLDER if answer is None else answer
            for answer in answers
        ]

    def _call(self, **request: Any) -> Any:
        """Call `model_call`, retrying where that may help."""
        for attempt in count(1):
            try:
                return self.model_call(**request)
            except Exception as error:
                time.sleep(self._wait(error, attempt))
        raise AssertionError("an attempt returns or raises")

    async def _acall(self, **request: Any) -> list[Any]:
        """As `_call`, of `amodel_call`."""
        for attempt in count(1):
            try:
                return await self.amodel_call(**request)
            except Exception as error:
                await asyncio.sleep(self._wait(error, attempt))
        raise AssertionError("an attempt returns or raises")

    def _wait(self, error: Exception, attempt: int) -> float:
        """Seconds until the next attempt. Raises the error after the last one."""
        if attempt >= self.max_retries or (
            isinstance(error, Refused) and not error.may_pass
        ):
            raise error
        eval_logger.info(
            "Attempt %d of %d failed: %s", attempt, self.max_retries, error
        )
        return float(
            max(getattr(error, "wait", 0.0), min(max(0.5 * 2 ** (attempt - 1), 1), 10))
        )

    async def get_batched_requests(
        self,
        requests: Sequence[Any],
        cache_keys: Sequence[Any],
        *,
        generate: bool = True,
        ctxlens: Sequence[int] | None = None,
        **kwargs: Any,
    ) -> list[list[Any]]:
        """The results of all batches, several on their way at a time."""
        from aiohttp import ClientSession, ClientTimeout, TCPConnector

        sem = asyncio.Semaphore(self._concurrent)
        size = self._batch_size
        batches = zip(
            chunks(requests, size),
            chunks(cache_keys, size),
            chunks(ctxlens or [None] * len(requests), size),
            strict=True,
        )
        async with ClientSession(
            connector=TCPConnector(
                limit=self._concurrent, ssl=ssl_context(self._trusted())
            ),
            timeout=ClientTimeout(total=self.timeout),
            trust_env=True,
        ) as session:
            shared_arguments = {
                "session": session,
                "sem": sem,
                "generate": generate,
                **kwargs,
            }
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(
                        self._acall(
                            messages=texts,
                            cache_keys=keys,
                            ctxlens=lengths,
                            **shared_arguments,
                        )
                    )
                    for texts, keys, lengths in batches
                ]
            return [task.result() for task in tasks]

    def _run_batches(
        self, requests: Sequence[Any], keys: Sequence[Any], **options: Any
    ) -> list[Any]:
        """Run `get_batched_requests` outside any event loop and flatten its results."""
        try:
            batches = asyncio.run(self.get_batched_requests(requests, keys, **options))
        except* Exception as errors:
            first: BaseException = errors
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            raise first from None
        return [response for batch in batches for response in batch]

    def batch_loglikelihood_requests(
        self, chunks: Iterable[list[LogLikelihoodInputs]]
    ) -> tuple[list[list[int]], list[int], list[Any]]:
        """Tokens, context lengths and cache keys; the beginning of long requests is cut."""
        inputs = []
        lengths = []
        keys = []
        for chunk in chunks:
            for key, context, continuation in chunk:
                context = context or [self.prefix_token_id or 0]  # of white space alone
                tokens = context + continuation
                excess = max(0, len(tokens) - self.max_length)
                if excess:
                    eval_logger.warning(
                        "%d tokens of a context are cut to fit %d.",
                        excess,
                        self.max_length,
                    )
                inputs.append(tokens[excess:])
                lengths.append(len(context) - excess)
                keys.append(key)
        return inputs, lengths, keys

    def _loglikelihood_tokens(
        self, requests: list[LogLikelihoodInputs], **kwargs: Any
    ) -> list[tuple[float, bool]]:
        assert self.tokenizer is not None, (
            "Log-likelihoods need a tokenizer, to tell the context's tokens from the"
            " continuation's: set tokenizer=NAME."
        )
        order = Collator(
            requests,
            lambda request: (
                -len(request[1] + request[2]),
                tuple(request[1] + request[2]),
            ),
        )
        responses: list[Any] = []
        for chunk in order.get_batched(
            n=self._batch_size if self._concurrent <= 1 else 0
        ):
            inputs, lengths, keys = self.batch_loglikelihood_requests([chunk])
            if self._concurrent > 1:
                responses += self._run_batches(
                    inputs, keys, generate=False, ctxlens=lengths
                )
                continue
            outputs = self._call(messages=inputs, generate=False)
            listed = [outputs] if isinstance(outputs, dict) else outputs
            responses += self._parse_reply(
                listed, False, keys, tokens=inputs, ctxlens=lengths
            )
        return order.get_original(responses)

    def generate_until(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[str]:
        """Generate texts, one request per batch with the same settings."""
        prompts: list[Any] = [request.args[0] for request in requests]
        if requests and len(requests[0].args) > 2:
            assert self.tokenizer is None, (
                "Images are sent without a tokenizer: set tokenizer_backend=None."
            )
            conversations = [
                create_image_prompt(
                    request.args[2]["visual"][: self.max_images],
                    json.loads(prompt.prompt),
                )
                for prompt, request in zip(prompts, requests, strict=True)
            ]
            prompts = [JsonChatStr(json.dumps(chat)) for chat in conversations]
        tokens: list[Any] = [None] * len(prompts)
        if self.tokenized_requests and prompts:
            tokens = self.tok_encode(prompts, add_special_tokens=self.add_bos_token)
        settings_of = [request.args[1] for request in requests]
        prompt_rows = list(zip(prompts, settings_of, tokens, strict=True))
        order = Collator(prompt_rows, lambda row: -len(row[0]), group_by="gen_kwargs")
        responses: list[str] = []
        for chunk in order.get_batched(
            n=self._batch_size if self._concurrent <= 1 else 0
        ):
            contexts, (settings, *_), encoded = zip(*chunk, strict=True)
            keys = [(context, settings) for context in contexts]
            messages: Sequence[Any] = contexts
            if self.tokenized_requests:
                room = self.max_length - settings.get(
                    "max_gen_toks", self._max_gen_toks
                )
                messages = [tokens[-room:] for tokens in encoded]
            if self._concurrent > 1:
                responses += self._run_batches(
                    messages, keys, generate=True, gen_kwargs=settings
                )
                continue
            outputs = self._call(
                messages=messages, generate=True, gen_kwargs=copy.deepcopy(settings)
            )
            responses += self._parse_reply(outputs, True, keys, contexts=contexts)
        return order.get_original(responses)

    def loglikelihood_rolling(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[float]:
        """Compute the log-probability of each text, in windows."""
        totals = []
        for (text,) in (request.args for request in requests):
            windows = get_rolling_token_windows(
                self.tok_encode(text), self.prefix_token_id or 0, self.max_length - 1, 1
            )
            pairs: Any = [(None, *make_disjoint_window(window)) for window in windows]
            totals.append(
                sum(
                    log_likelihood
                    for log_likelihood, _ in self._loglikelihood_tokens(pairs)
                )
            )
            self.cache_hook.add_partial("loglikelihood_rolling", (text,), totals[-1])
        return totals
