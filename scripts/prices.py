"""Writes `models/remote/prices/prices.toml` from the price map inside a wheel of litellm.

Only figures are taken.

    pip download litellm --no-deps
    python -m scripts.prices litellm-1.109.1-....whl --as-of 2026-11-12

--as-of is the day the wheel was published. Models that are no longer served on that day, and those
that do not answer in text, are left out; so are snapshots that cost what their undated name costs.
"""

from __future__ import annotations

import argparse
import json
import re
import zipfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

MAP = "litellm/model_prices_and_context_window_backup.json"
OUT = (
    Path(__file__).resolve().parent.parent
    / "src/evalwright/models/remote/prices/prices.toml"
)
SNAPSHOT = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|\d{8}|latest)$")
NOT_TEXT = re.compile(
    r"audio|realtime|image|tts|live|robotics|lyria|transcribe|search|computer-use|omni|veo"
    r"|guard|embed|experimental|beta|daybreak|cyber"
)

# Our row, the names that litellm gives the same provider, and where that provider's own prices
# stand.
PROVIDERS: dict[str, tuple[tuple[str, ...], str]] = {
    "ai21": (("ai21",), "https://www.ai21.com/pricing/"),
    "anthropic": (
        ("anthropic",),
        "https://platform.claude.com/docs/en/about-claude/pricing",
    ),
    "baseten": (("baseten",), "https://www.baseten.co/pricing/"),
    "bedrock": (
        ("bedrock", "bedrock_converse"),
        "https://aws.amazon.com/bedrock/pricing/",
    ),
    "cerebras": (("cerebras",), "https://www.cerebras.ai/pricing"),
    "cloudflare": (
        ("cloudflare",),
        "https://developers.cloudflare.com/workers-ai/platform/pricing/",
    ),
    "cohere": (("cohere_chat",), "https://cohere.com/pricing"),
    "deepinfra": (("deepinfra",), "https://deepinfra.com/pricing"),
    "deepseek": (("deepseek",), "https://api-docs.deepseek.com/quick_start/pricing"),
    "fireworks": (("fireworks_ai",), "https://fireworks.ai/pricing"),
    "friendli": (
        ("friendliai",),
        "https://friendli.ai/docs/guides/serverless_endpoints/pricing",
    ),
    "gemini": (("gemini",), "https://ai.google.dev/gemini-api/docs/pricing"),
    "google": (("gemini",), "https://ai.google.dev/gemini-api/docs/pricing"),
    "groq": (("groq",), "https://groq.com/pricing"),
    "hyperbolic": (
        ("hyperbolic",),
        "https://docs.hyperbolic.xyz/docs/hyperbolic-pricing",
    ),
    "inception": (("inception",), "https://platform.inceptionlabs.ai/docs"),
    "minimax": (("minimax",), "https://platform.minimax.io/docs/guides/pricing"),
    "mistral": (("mistral",), "https://mistral.ai/pricing"),
    "moonshot": (("moonshot",), "https://platform.kimi.ai/docs/pricing/chat"),
    "nebius": (("nebius",), "https://tokenfactory.nebius.com/"),
    "novita": (("novita",), "https://novita.ai/pricing"),
    "openai": (("openai",), "https://developers.openai.com/api/docs/pricing"),
    "ovh": (
        ("ovhcloud",),
        "https://www.ovhcloud.com/en/public-cloud/ai-endpoints/catalog/",
    ),
    "perplexity": (
        ("perplexity",),
        "https://docs.perplexity.ai/getting-started/pricing",
    ),
    "qwen": (
        ("dashscope",),
        "https://www.alibabacloud.com/help/en/model-studio/models",
    ),
    "sambanova": (("sambanova",), "https://cloud.sambanova.ai/plans/pricing"),
    "together": (("together_ai",), "https://www.together.ai/pricing"),
    "vercel": (("vercel_ai_gateway",), "https://vercel.com/ai-gateway/models"),
    "vertex": (
        ("vertex_ai-language-models", "vertex_ai-anthropic_models"),
        "https://cloud.google.com/vertex-ai/generative-ai/pricing",
    ),
    "wandb": (("wandb",), "https://wandb.ai/site/pricing/inference"),
    "xai": (("xai",), "https://docs.x.ai/developers/pricing"),
    "zai": (("zai",), "https://docs.z.ai/guides/overview/pricing"),
}
# Written in front of names by litellm and by no provider.
PREFIXES = (
    "vercel_ai_gateway",
    "fireworks_ai",
    "together_ai",
    "cohere_chat",
    "vertex_ai",
    "dashscope",
    "moonshot",
)


def main() -> None:
    """Read the wheel, write the table and print how many models it has."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--as-of", required=True, metavar="YYYY-MM-DD")
    arguments = parser.parse_args()
    with zipfile.ZipFile(arguments.wheel) as wheel:
        price_map = json.loads(wheel.read(MAP))
    version = arguments.wheel.name.split("-")[1]
    lines = [
        (
            "# US dollars per million tokens, by provider and model. docs/providers.md"
            " explains the keys; scripts/prices.py writes"
        ),
        (
            f"# this file from the price map in litellm {version}, published"
            f" {arguments.as_of}. Where a price stands: `source`."
        ),
        "",
        f'as_of = "{arguments.as_of}"',
    ]
    count = 0
    for name, (theirs, source) in sorted(PROVIDERS.items()):
        rows = rows_of(price_map, theirs, arguments.as_of)
        count += len(rows)
        lines += [
            "",
            f"[{name}]",
            f'source = "{source}"',
            *(f'"{model}" = {row}' for model, row in rows.items()),
        ]
    OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{OUT}: {count} models of {len(PROVIDERS)} providers")


def rows_of(
    price_map: Mapping[str, Any], theirs: tuple[str, ...], day: str
) -> dict[str, str]:
    """One provider's rows by model, sorted, without snapshots that their undated name covers."""
    rows: dict[str, str] = {}
    for key, entry in price_map.items():
        if entry.get("litellm_provider") not in theirs or not is_served(
            key, entry, day
        ):
            continue
        model = key
        for prefix in (*theirs, *PREFIXES):
            model = model.removeprefix(f"{prefix}/")
        if theirs[0] == "bedrock" and "/" in model:
            continue  # a region or a commitment
        rows.setdefault(model, row_of(entry))
    return {
        model: row
        for model, row in sorted(rows.items(), key=lambda pair: pair[0].lower())
        if (short := SNAPSHOT.sub("", model)) == model or rows.get(short) != row
    }


def is_served(key: str, entry: Mapping[str, Any], day: str) -> bool:
    """Whether this is a model that answers in text on that day, at a price."""
    if (
        entry.get("mode") not in ("chat", "responses")
        or NOT_TEXT.search(key)
        or key.startswith("ft:")
    ):
        return False
    if entry.get("deprecation_date", "9999") <= day or key.startswith("together-ai-"):
        return False
    into = entry.get("input_cost_per_token")
    output_price = entry.get("output_cost_per_token")
    return (
        into is not None and output_price is not None and (into > 0 or output_price > 0)
    )


def row_of(entry: Mapping[str, Any]) -> str:
    """Format one row as an inline table."""
    into = entry["input_cost_per_token"]
    output_price = entry["output_cost_per_token"]
    parts = {"input": million(into), "output": million(output_price)}
    if (cached := entry.get("cache_read_input_token_cost")) is not None:
        parts["cached_input"] = million(cached)
    batch = entry.get("input_cost_per_token_batches")
    if batch and into and entry.get("output_cost_per_token_batches"):
        parts["batch"] = plain(round(Decimal(str(batch)) / Decimal(str(into)), 4))
    above = next(
        (
            key
            for key in entry
            if re.fullmatch(r"input_cost_per_token_above_\d+k_tokens", key)
        ),
        None,
    )
    if above is not None:
        end = above.removeprefix("input_cost_per_token")
        parts["long_above"] = f"{re.sub(r'[^0-9]', '', end)}000"
        parts["long_input"] = million(entry[above])
        if (cached := entry.get(f"cache_read_input_token_cost{end}")) is not None:
            parts["long_cached_input"] = million(cached)
        if (long := entry.get(f"output_cost_per_token{end}")) is not None:
            parts["long_output"] = million(long)
    if entry["litellm_provider"] == "perplexity" and (
        fee := entry.get("search_context_cost_per_query")
    ):
        parts["request"] = plain(Decimal(str(fee["search_context_size_low"])))
    return "{ " + ", ".join(f"{name} = {value}" for name, value in parts.items()) + " }"


def million(dollars: float) -> str:
    """Dollars per token as dollars per million tokens, without the noise of binary fractions."""
    return plain(round(Decimal(str(dollars)) * 1_000_000, 8))


def plain(value: Decimal) -> str:
    """Format a decimal for TOML: no exponent, no trailing zeros."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


if __name__ == "__main__":
    main()
