"""What a backend of sandboxes, or a dialect whose models act, may use of Evalwright.

Public and stable as `evalwright.extend` is; docs/sandbox-backends.md shows a backend.

    from evalwright.extend.acting import Executed, Sandbox, SandboxBackend, register_sandbox
"""

from evalwright.core.tool_calls import ToolCall
from evalwright.sandboxes.backends import register_backend as register_sandbox
from evalwright.sandboxes.plan import PlannedFile, SandboxPlan
from evalwright.sandboxes.protocol import (
    Executed,
    Sandbox,
    SandboxBackend,
    SandboxFailed,
    SandboxLimits,
    SandboxPathError,
    SandboxSettings,
    Snapshot,
    SnapshotMissing,
)
from evalwright.scorers.sandbox.state import acted_in
from evalwright.strategies.limits import Limits as AgentLimits

__all__ = [
    "AgentLimits",
    "Executed",
    "PlannedFile",
    "Sandbox",
    "SandboxBackend",
    "SandboxFailed",
    "SandboxLimits",
    "SandboxPathError",
    "SandboxPlan",
    "SandboxSettings",
    "Snapshot",
    "SnapshotMissing",
    "ToolCall",
    "acted_in",
    "register_sandbox",
]
