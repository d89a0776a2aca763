"""Amazon Bedrock's Converse on loopback: signatures recomputed by botocore, bodies checked against botocore's own model.

Streams are Amazon's event frames, encoded here. Plans may name, besides what every server does: "guardrail", "filtered",
"max-tokens", "context", "stop-sequence", "malformed", "empty", "thinking", "cached", and the documented errors of `FAULTS`.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar
from urllib.parse import unquote

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.session import Session
from botocore.validate import ParamValidator

from support.wire_server import Asked, Refused, WireServer

ACCESS, SECRET, TOKEN = "AKIATESTACCESSKEY0", "wJalrXUtnFEMI/K7MDENG/test-secret", "FwoGZXIvYXdzTESTTOKEN"
BEARER = "bedrock-api-key-test-0123456789"
REGION = "eu-west-1"
EVENTS = "application/vnd.amazon.eventstream"


def refused(status: int, kind: str, message: str) -> Refused:
    """A documented error: the class in a header, the words in the body."""
    return Refused(status, {"message": message}, {"x-amzn-ErrorType": kind})


def invalid(message: str) -> Refused:
    """A 400."""
    return refused(400, "ValidationException", message)


def frame(kind: str, payload: Mapping[str, Any], message_type: str = "event") -> bytes:
    """One message of Amazon's event stream: prelude, its CRC, headers, payload, CRC of it all."""
    named = {
        f":{message_type}-type": kind,
        ":content-type": "application/json",
        ":message-type": message_type,
    }
    headers = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in named.items()
    )
    data = json.dumps(payload, ensure_ascii=False).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(data), len(headers))
    start = prelude + struct.pack("!I", zlib.crc32(prelude))
    message = start + headers + data
    return message + struct.pack("!I", zlib.crc32(message))


def converse_reply(body: Mapping[str, Any], kind: str | None) -> dict[str, Any]:
    """The documented reply. The text says the last turn; reasoning is shown where it was asked for."""
    last = "".join(block["text"] for block in body["messages"][-1]["content"])
    content: list[dict[str, Any]] = [{"text": f"You said: {last} ✓"}]
    usage: dict[str, Any] = {"inputTokens": 30, "outputTokens": 12, "totalTokens": 42}
    thinking = body.get("additionalModelRequestFields", {}).get("thinking", {})
    if kind == "thinking" or thinking.get("type", "disabled") != "disabled":
        content.insert(
            0, {"reasoningContent": {"reasoningText": {"text": "Let me see. 思考", "signature": "x"}}}
        )
        content.insert(1, {"reasoningContent": {"redactedContent": "eA=="}})
    reason = {
        "guardrail": "guardrail_intervened",
        "filtered": "content_filtered",
        "max-tokens": "max_tokens",
        "context": "model_context_window_exceeded",
        "stop-sequence": "stop_sequence",
        "malformed": "malformed_model_output",
    }.get(kind or "", "end_turn")
    if kind == "guardrail":
        content = [{"text": "Sorry, the model cannot answer this question."}]
    if kind in ("filtered", "empty", "malformed"):
        content = []
    if kind == "cached":
        usage.update(cacheReadInputTokens=2000, cacheWriteInputTokens=100, totalTokens=2142)
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": reason,
        "usage": usage,
        "metrics": {"latencyMs": 551},
    }


def converse_events(reply: Mapping[str, Any]) -> list[bytes]:
    """The documented events. `p` is the padding that Amazon adds."""
    frames = [frame("messageStart", {"p": "abcdef", "role": "assistant"})]
    for index, block in enumerate(reply["output"]["message"]["content"]):
        for delta in _deltas(block):
            data = {"contentBlockIndex": index, "delta": delta, "p": "abc"}
            frames.append(frame("contentBlockDelta", data))
        frames.append(frame("contentBlockStop", {"contentBlockIndex": index, "p": "ab"}))
    frames.append(frame("messageStop", {"p": "a", "stopReason": reply["stopReason"]}))
    frames.append(frame("metadata", {"metrics": reply["metrics"], "p": "abcd", "usage": reply["usage"]}))
    return frames


def _deltas(block: Mapping[str, Any]) -> list[dict[str, Any]]:
    if "text" in block:
        text = block["text"]
        half = len(text) // 2
        return [{"text": part} for part in (text[:half], text[half:])]
    thought = block["reasoningContent"]
    if "redactedContent" in thought:
        return [{"reasoningContent": {"redactedContent": thought["redactedContent"]}}]
    text = thought["reasoningText"]["text"]
    half = len(text) // 2
    parts = [
        {"text": text[:half]},
        {"text": text[half:]},
        {"signature": thought["reasoningText"]["signature"]},
    ]
    return [{"reasoningContent": part} for part in parts]


class BedrockServer(WireServer):
    """POST /model/{modelId}/converse and /converse-stream, with a signature or a bearer."""

    STREAM_TYPE = EVENTS
    FAULTS: ClassVar[Mapping[str, Refused]] = {
        "400": invalid("The maximum tokens you requested exceeds the model limit of 8192."),
        "403": refused(
            403, "AccessDeniedException", "You don't have access to the model with the specified model ID."
        ),
        "expired": refused(
            403, "ExpiredTokenException", "The security token included in the request is expired"
        ),
        "iam": Refused(
            403, {"Message": "User: arn:aws:iam::1:user/x is not authorized to perform: bedrock:InvokeModel"}
        ),
        "404": refused(
            404, "ResourceNotFoundException", "This model version has reached the end of its life."
        ),
        "408": refused(408, "ModelTimeoutException", "Model has timed out in processing the request."),
        "424": refused(
            424, "ModelErrorException", "The system encountered an unexpected error during processing."
        ),
        "429": refused(429, "ThrottlingException", "Too many requests, please wait before trying again."),
        "not-ready": refused(429, "ModelNotReadyException", "Model is not ready for inference."),
        "500": refused(500, "InternalServerException", "An internal server error occurred."),
        "503": refused(503, "ServiceUnavailableException", "The service is unable to process your request."),
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._model = Session().get_service_model("bedrock-runtime")

    def unparsable(self) -> Refused:
        return refused(400, "SerializationException", "The request body is not JSON.")

    def garbage_frame(self) -> bytes:
        good = frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "x"}})
        return good[:-8] + b"garbage!" + good[-4:]

    def error_frame(self) -> bytes:
        return frame("throttlingException", {"message": "Too many tokens, please wait."}, "exception")

    def model(self, asked: Asked) -> str:
        """The model's id; refuses a path that is not encoded exactly once."""
        parts = asked.path.split("/")
        if (
            asked.method != "POST"
            or len(parts) != 4
            or parts[1] != "model"
            or parts[3] not in ("converse", "converse-stream")
        ):
            raise refused(404, "UnknownOperationException", "")
        model = unquote(parts[2])
        if ":" in parts[2] or "%" in model:
            raise invalid("The provided model identifier is invalid.")
        return model

    def check(self, asked: Asked) -> None:
        model = self.model(asked)
        if asked.headers.get("Authorization", "").startswith("Bearer "):
            if asked.headers["Authorization"] != f"Bearer {BEARER}":
                raise refused(
                    403, "AccessDeniedException", "Authentication failed: the API key is not valid."
                )
        else:
            check_signature(asked)
        if asked.query:
            raise invalid(f"Unexpected query {dict(asked.query)}")
        stream = asked.path.endswith("-stream")
        shape = self._model.operation_model("ConverseStream" if stream else "Converse").input_shape
        report = ParamValidator().validate({**asked.body, "modelId": model}, shape)
        if report.has_errors():
            raise invalid(report.generate_report())
        check_turns(asked.body, model)

    def reply(self, asked: Asked, kind: str | None) -> Any:
        return converse_reply(asked.body, kind)

    def streams(self, asked: Asked) -> bool:
        return asked.path.endswith("/converse-stream")

    def frames(self, reply: Any, asked: Asked) -> list[bytes]:
        return converse_events(reply)


def check_turns(body: Mapping[str, Any], model: str) -> None:
    """The rules that the model of the interface does not state."""
    messages, config = body.get("messages") or [], body.get("inferenceConfig", {})
    if not messages or messages[0]["role"] != "user":
        raise invalid(
            "A conversation must start with a user message. Try again with a conversation that starts with a user message."
        )
    roles = [message["role"] for message in messages]
    if any(role not in ("user", "assistant") for role in roles):
        raise invalid("messages.role: must be one of user, assistant")
    if any(one == other for one, other in pairwise(roles)):
        raise invalid('messages: roles must alternate between "user" and "assistant"')
    if not all(block.get("text", "x").strip() for message in messages for block in message["content"]):
        raise invalid(
            "The text field in the ContentBlock object is blank. Add text to the text field, and try again."
        )
    if config.get("temperature", 0) > 1 or config.get("topP", 0) > 1:
        raise invalid("inferenceConfig: must be at most 1")
    if "claude" not in model:
        if roles[-1] != "user":
            raise invalid(
                "The model that you are using requires the last turn in the conversation to be a user message."
            )
        return
    if not all(sign.strip() for sign in config.get("stopSequences", ())):
        raise invalid(
            "The model returned the following errors: stop_sequences: each stop sequence must contain non-whitespace"
        )
    thinking = body.get("additionalModelRequestFields", {}).get("thinking", {})
    if thinking.get("type") == "enabled" and thinking["budget_tokens"] >= config.get("maxTokens", 10**6):
        raise invalid(
            "The model returned the following errors: `max_tokens` must be greater than `thinking.budget_tokens`."
        )
    if thinking.get("type", "disabled") != "disabled" and config.get("temperature", 1) != 1:
        raise invalid(
            "The model returned the following errors: `temperature` may only be set to 1 when thinking is enabled."
        )


def check_signature(asked: Asked) -> None:
    """Compute the signature anew, by botocore, from the request as it came; refuse another one."""
    given = asked.headers.get("Authorization", "")
    if not given.startswith("AWS4-HMAC-SHA256 "):
        raise refused(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
    parts = dict(part.strip().split("=", 1) for part in given.split(" ", 1)[1].split(","))
    signed = parts["SignedHeaders"].split(";")
    token = asked.headers.get("X-Amz-Security-Token")
    date = asked.headers["X-Amz-Date"]
    scope = f"{ACCESS}/{date[:8]}/{REGION}/bedrock/aws4_request"
    if not {"host", "x-amz-date", "content-type"} <= set(signed) or (token is not None) != (
        "x-amz-security-token" in signed
    ):
        raise refused(403, "SignatureDoesNotMatchException", f"Not all headers are signed: {signed}")
    request = AWSRequest(
        method=asked.method,
        url=f"http://{asked.headers['Host']}{asked.path}",
        data=asked.raw,
        headers={name: asked.headers[name] for name in signed},
    )
    request.context["timestamp"] = date
    signer = SigV4Auth(Credentials(ACCESS, SECRET, token), "bedrock", REGION)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    if parts["Credential"] != scope or parts["Signature"] != signer.signature(text, request):
        words = "The request signature we calculated does not match the signature you provided."
        raise refused(403, "InvalidSignatureException", words)
