"""lm_eval's server clients: the interface and arguments of each."""

from __future__ import annotations

COMPLETIONS = ("local-completions", "openai-completions")
CHAT = ("local-chat-completions", "openai-chat-completions")
ANTHROPIC = ("anthropic-chat", "anthropic-chat-completions")
CLIENTS = (*COMPLETIONS, *CHAT, *ANTHROPIC)
ENDPOINTS = {
    "completions": "/completions",
    "chat": "/chat/completions",
    "anthropic": "/messages",
}

ECHO_MODELS = ("babbage-002", "davinci-002")
"""Models for which OpenAI returns log-likelihoods of prompts."""
TOKENIZING = (
    "tokenizer",
    "tokenizer_backend",
    "tokenized_requests",
    "add_bos_token",
    "custom_prefix_token_id",
    "use_fast_tokenizer",
    "trust_remote_code",
    "revision",
    "max_length",
)
ARGUMENTS = frozenset(
    (
        *TOKENIZING,
        "max_gen_toks",
        "seed",
        "eos_string",
        "think_end_token",
        "base_url",
        "num_concurrent",
        "max_retries",
        "timeout",
        "header",
    )
)
"""Arguments of lm_eval's clients that are supported here."""
REASONING_MARKS = ("o1", "o3", "o4", "5")
"""Substrings by which lm_eval recognises OpenAI's reasoning models."""
