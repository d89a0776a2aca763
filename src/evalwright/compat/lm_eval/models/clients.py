"""The released package's clients of servers by name: which interface each speaks, and what
arguments they take.
"""

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
"""The models of which OpenAI itself gives log-likelihoods of prompts."""
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
"""Arguments of its clients that are theirs here, too."""
REASONING_MARKS = ("o1", "o3", "o4", "5")
"""What names of OpenAI's models that reason are known by there."""
