"""Providers of remote models: `providers.toml` of this package, and a person's own files."""

from evalwright.models.remote.providers.provider import (
    ModelRule,
    Provider,
    apply_rules,
    is_at,
    may_have_keys,
)
from evalwright.models.remote.providers.provider_table import (
    add_file,
    find,
    is_packaged,
    names,
    user_names,
)

__all__ = [
    "ModelRule",
    "Provider",
    "add_file",
    "apply_rules",
    "find",
    "is_at",
    "is_packaged",
    "may_have_keys",
    "names",
    "user_names",
]
