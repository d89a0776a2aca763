"""Objects in S3-compatible storage: Amazon S3, MinIO, Ceph, Cloudflare R2 and others.

botocore finds credentials, region and endpoint where the AWS command line finds them: in the
environment, in `~/.aws`, or in the role of the machine. No suite, record or other file of
somebody's can set them, so nobody else decides where requests and signatures are sent.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from evalwright.core.errors import ConfigurationError, MissingExtra, UsageError
from evalwright.core.local_paths import scheme_of
from evalwright.core.secrets import mask, remember, without_login
from evalwright.core.text import printable

CONNECT_TIMEOUT_S = 10
READ_TIMEOUT_S = 60
MAX_ATTEMPTS = 6
"""Tries of one request, with growing gaps; AWS_MAX_ATTEMPTS sets another number."""
MAX_RESUMES = 20
"""How often the download of one object goes on after its connection broke."""
PART_BYTES = 32 << 20
"""Larger files are uploaded in parts, of which one is in memory at a time."""
MAX_PARTS = 10_000
MAX_LISTED_KEYS = 500_000
MAX_KEY_BYTES = 1024
"""What S3 allows for a key."""
SPARE_DISK_BYTES = 64 << 20
"""What a download leaves free on the disk."""
MAX_REASON_CHARS = 300
_BLOCK_BYTES = 1 << 20
_BUCKET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{2,254}")

_ADVICE_BY_CODE = {
    "NoSuchBucket": "there is no such bucket: check its name, the endpoint and the region",
    "AccessDenied": "access is denied: these credentials may not do that",
    "403": "access is denied: these credentials may not do that",
    "InvalidAccessKeyId": "the server does not know the access key",
    "SignatureDoesNotMatch": "the secret key is not that of the access key",
    "ExpiredToken": "the session has expired: log in again",
    "AuthorizationHeaderMalformed": "the region is another one: set AWS_REGION",
    "PermanentRedirect": "the bucket is in another region: set AWS_REGION",
    "SlowDown": "the server wants fewer requests: run the same command again later",
}
_CHANGED_CODES = frozenset(
    ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")
)
_MISSING_CODES = frozenset(("NoSuchKey", "NoSuchUpload", "404", "NotFound"))
_NO_CONDITIONS_CODES = frozenset(("NotImplemented", "501"))
"""How servers say that they do not support conditional writes."""


class BucketError(UsageError):
    """A bucket or an object in it that cannot be read or written."""


class ObjectMissing(BucketError):
    """There is no such object."""


class ObjectChanged(BucketError):
    """Somebody else wrote the object since it was read."""


class NoConditions(BucketError):
    """The server does not support conditional writes."""


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """An address in a bucket: `s3://BUCKET/KEY`.

    Attributes:
        bucket: the bucket's name.
        key: the key of an object or a folder, without slashes at its ends; "" for the whole bucket.
    """

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> BucketAddress:
        """The folder that the key is in."""
        return BucketAddress(self.bucket, self.key.rpartition("/")[0])

    def child(self, name: str) -> BucketAddress:
        """The address of a name in this folder."""
        return BucketAddress(self.bucket, f"{self.key}/{name}" if self.key else name)


def is_bucket_address(text: object) -> bool:
    """Whether a text is an address in a bucket rather than a local path."""
    return isinstance(text, str) and scheme_of(text).lower() == "s3"


def parse_bucket_address(text: str, form: str = "FOLDER/NAME") -> BucketAddress:
    """Parse `s3://BUCKET/KEY`.

    Args:
        text: the address.
        form: what the key should be, for messages.

    Raises:
        ConfigurationError: it is no such address, has a login in it, or leads out of its folder.
    """
    address = printable(mask(without_login(text)))
    bucket, _, path = text.partition("://")[2].partition("/")
    if "@" in bucket:
        raise ConfigurationError(
            f"'{address}' had a login in it, which is not used: set AWS_ACCESS_KEY_ID and"
            " AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
        )
    problem = _address_problem(text, bucket, path.strip("/"))
    if problem:
        raise ConfigurationError(
            f"'{address}' is not an address in a bucket: {problem}. Write"
            f" s3://BUCKET/{form}."
        )
    return BucketAddress(bucket, path.strip("/"))


def _address_problem(text: str, bucket: str, key: str) -> str:
    """Say why a text is no address in a bucket; "" if it is one."""
    if not is_bucket_address(text):
        return "it does not begin with s3://"
    if not _BUCKET_NAME.fullmatch(bucket):
        return (
            "a bucket's name has 3 or more letters, digits, '.', '-' or '_', which"
            f" '{printable(mask(bucket))}' has not"
        )
    segments = key.split("/") if key else []
    if any(segment in ("", ".", "..") for segment in segments):
        return "no part of a path in a bucket is empty, '.' or '..'"
    if not key.isprintable() or "\\" in key:
        return "a path in a bucket has no control characters and no backslashes"
    if len(key.encode("utf-8", "replace")) > MAX_KEY_BYTES:
        return f"a path in a bucket has at most {MAX_KEY_BYTES:,} bytes"
    return ""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object that was read whole. etag: the server's name of this content."""

    content: bytes
    etag: str


class Bucket:
    """A bucket, with the few operations that runs and exports need.

    Args:
        name: the bucket's name.
        part_bytes: larger files are uploaded in parts of this size.

    Raises:
        MissingExtra: botocore is not installed.
        BucketError: there are no credentials, or the settings of AWS cannot be used.
    """

    def __init__(self, name: str, part_bytes: int = PART_BYTES) -> None:
        self.name = name
        self._part_bytes = part_bytes
        with self._explaining(BucketAddress(name, "")):
            self._client = _connect()

    def address(self, key: str) -> BucketAddress:
        """The address of a key in this bucket."""
        return BucketAddress(self.name, key)

    def read(self, key: str, most_bytes: int) -> StoredObject | None:
        """Read a small object into memory; None where there is none. Raises BucketError."""
        buffer = io.BytesIO()
        try:
            etag = self._download(key, buffer, most_bytes)
        except ObjectMissing:
            return None
        return StoredObject(buffer.getvalue(), etag)

    def download(self, key: str, path: Path, most_bytes: int) -> str:
        """Download an object into a new file.

        A broken connection is taken up where it broke.

        Args:
            key: the object's key.
            path: the file, which must not exist.
            most_bytes: the largest object that is downloaded.

        Returns:
            The SHA-256 of the file.

        Raises:
            ObjectMissing: there is no such object.
            BucketError: it is too large, or cannot be downloaded.
            OSError: the file cannot be written.
        """
        from evalwright.core.private import open_private

        free_bytes = shutil.disk_usage(path.parent).free - SPARE_DISK_BYTES
        with open_private(path, "xb") as file:
            self._download(key, file, min(most_bytes, free_bytes))
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def _download(self, key: str, file: IO[bytes], most_bytes: int) -> str:
        etag = ""
        for _ in range(MAX_RESUMES):
            response = self._get(key, file, etag)
            etag = str(response.get("ETag", ""))
            body = response["Body"]
            with self._explaining(self.address(key)):
                try:
                    n_bytes = response.get("ContentLength") or 0
                    self._check_size(key, file.tell() + n_bytes, most_bytes)
                    for block in body.iter_chunks(_BLOCK_BYTES):
                        file.write(block)
                        self._check_size(key, file.tell(), most_bytes)
                    return etag
                except _broken_connections():
                    continue
                finally:
                    body.close()
        raise BucketError(
            f"{self.address(key)} cannot be downloaded: the connection broke"
            f" {MAX_RESUMES} times. Run the same command again later."
        )

    def _get(self, key: str, file: IO[bytes], etag: str) -> Mapping[str, Any]:
        """Request an object from where the file ends; of the same content as before."""
        position = file.tell()
        # Without an etag the rest could be that of another content.
        can_resume = bool(position and etag)
        resume = {"Range": f"bytes={position}-", "IfMatch": etag} if can_resume else {}
        response: Mapping[str, Any] = self._call("get_object", key, **resume)
        if position and "ContentRange" not in response:  # sent from the beginning again
            file.seek(0)
            file.truncate()
        return response

    def _check_size(self, key: str, n_bytes: int, most_bytes: int) -> None:
        if n_bytes > most_bytes:
            raise BucketError(
                f"{self.address(key)} has more than the {max(most_bytes, 0) / 1e6:,.0f}"
                " MB that are read or that the disk has room for."
            )

    def put(
        self, key: str, content: bytes, *, if_etag: str = "", if_absent: bool = False
    ) -> None:
        """Write an object in one request.

        Args:
            key: the object's key.
            content: its bytes.
            if_etag: write only if the object is still the one with this etag.
            if_absent: write only if there is no such object yet.

        Raises:
            ObjectChanged: the condition does not hold.
            BucketError: it cannot be written.
        """
        md5 = _md5(content)
        self._write(
            "put_object",
            key,
            md5.hex(),
            _condition(if_etag, if_absent),
            Body=content,
            ContentMD5=_base64(md5),
        )

    def upload(self, key: str, path: Path, *, if_absent: bool = False) -> None:
        """Write an object from a file, in parts if it is large; it appears whole or not at all.

        Raises:
            ObjectChanged: there is such an object already, and `if_absent` is set.
            BucketError: it cannot be written.
            OSError: the file cannot be read.
        """
        n_bytes = path.stat().st_size
        with path.open("rb") as file:
            if n_bytes <= self._part_bytes:
                self.put(key, file.read(), if_absent=if_absent)
                return
            upload_id = self._call("create_multipart_upload", key)["UploadId"]
            try:
                parts, etag = self._send_parts(key, file, n_bytes, upload_id)
                is_completed = self._write(
                    "complete_multipart_upload",
                    key,
                    etag,
                    _condition("", if_absent),
                    UploadId=upload_id,
                    MultipartUpload={"Parts": parts},
                )
                if not is_completed:
                    self._abort(key, upload_id)
            except BaseException:
                # Parts of an upload that is never completed would be kept, and paid for.
                self._abort(key, upload_id)
                raise

    def _send_parts(
        self, key: str, file: IO[bytes], n_bytes: int, upload_id: str
    ) -> tuple[list[Mapping[str, Any]], str]:
        """Send a file in parts; return them, and the etag that the whole object gets."""
        part_bytes = max(self._part_bytes, -(-n_bytes // MAX_PARTS))
        parts: list[Mapping[str, Any]] = []
        digests = b""
        while content := file.read(part_bytes):
            md5 = _md5(content)
            digests += md5
            number = len(parts) + 1
            response = self._call(
                "upload_part",
                key,
                UploadId=upload_id,
                PartNumber=number,
                Body=content,
                ContentMD5=_base64(md5),
            )
            parts.append({"PartNumber": number, "ETag": response["ETag"]})
        return parts, f"{_md5(digests).hex()}-{len(parts)}"

    def _abort(self, key: str, upload_id: str) -> None:
        try:
            self._call("abort_multipart_upload", key, UploadId=upload_id)
        except BucketError:
            return  # what is reported is why the upload failed

    def delete(self, key: str) -> None:
        """Delete an object. Raises BucketError."""
        self._call("delete_object", key)

    def exists(self, key: str) -> bool:
        """Tell whether there is an object. Raises BucketError."""
        return bool(self._etag(key))

    def _etag(self, key: str) -> str:
        try:
            return str(self._call("head_object", key)["ETag"])
        except ObjectMissing:
            return ""

    def sizes(self, folder: str) -> dict[str, int]:
        """List all objects in a folder: size in bytes by key. Raises BucketError."""
        prefix = f"{folder}/" if folder else ""
        return {
            listed["Key"]: int(listed["Size"])
            for page in self._pages(prefix)
            for listed in page.get("Contents", ())
            if listed["Key"].startswith(prefix)
        }

    def folders(self, folder: str) -> list[str]:
        """List the names of the folders directly in a folder, sorted. Raises BucketError."""
        prefix = f"{folder}/" if folder else ""
        return sorted(
            str(listed["Prefix"])[len(prefix) : -1]
            for page in self._pages(prefix, Delimiter="/")
            for listed in page.get("CommonPrefixes", ())
            if str(listed["Prefix"]).startswith(prefix)
        )

    def _pages(self, prefix: str, **options: Any) -> Iterator[Mapping[str, Any]]:
        n_keys = 0
        continuation: dict[str, str] = {}
        while n_keys < MAX_LISTED_KEYS:
            page = self._call(
                "list_objects_v2", None, Prefix=prefix, **options, **continuation
            )
            yield page
            # An empty page counts too: a server could send such pages forever.
            n_keys += max(1, int(page.get("KeyCount", 0)))
            if not page.get("IsTruncated"):
                return
            continuation = {"ContinuationToken": page.get("NextContinuationToken", "")}
        raise BucketError(
            f"{self.address(prefix)} has more than {MAX_LISTED_KEYS:,} objects: name a"
            " folder in it."
        )

    def _write(
        self,
        operation: str,
        key: str,
        etag: str,
        condition: Mapping[str, str],
        **fields: Any,
    ) -> bool:
        """Write an object, on a condition where the server supports any.

        A reply may be lost after the object was written; the request that is sent again then meets
        the object that the first one wrote, which has the etag of this content.

        Returns:
            False if the object was there already with this content.
        """
        try:
            self._call(operation, key, **condition, **fields)
        except NoConditions:
            self._call(operation, key, **fields)
        except (ObjectChanged, ObjectMissing):
            if self._etag(key).strip('"') != etag:
                raise
            return False
        return True

    def _call(self, operation: str, key: str | None, **fields: Any) -> Any:
        address = self.address(str(fields.get("Prefix", "")) if key is None else key)
        keyed = {} if key is None else {"Key": key}
        with self._explaining(address):
            method: Callable[..., Any] = getattr(self._client, operation)
            return method(Bucket=self.name, **keyed, **fields)

    @contextmanager
    def _explaining(self, address: BucketAddress) -> Iterator[None]:
        """Turn errors of botocore into ours."""
        try:
            from botocore import exceptions as aws
        except ImportError:
            raise MissingExtra(f"'{address}'", "s3", "botocore") from None

        try:
            yield
        except aws.ClientError as error:
            raise _client_error(error, address) from None
        except (aws.NoCredentialsError, aws.PartialCredentialsError):
            raise BucketError(
                f"There are no AWS credentials for {address}: set AWS_ACCESS_KEY_ID and"
                " AWS_SECRET_ACCESS_KEY, or AWS_PROFILE for a profile of ~/.aws."
            ) from None
        except (aws.ConnectionError, aws.HTTPClientError) as error:
            raise BucketError(
                f"The server of {address} cannot be reached: {_shorten(error)}. Check the"
                " network and the endpoint (AWS_ENDPOINT_URL_S3), or try again later."
            ) from None
        except (aws.BotoCoreError, ValueError) as error:
            raise BucketError(f"{address} cannot be used: {_shorten(error)}.") from None


def _connect() -> Any:
    from botocore.config import Config
    from botocore.exceptions import NoCredentialsError
    from botocore.session import Session

    session = Session()
    session.register_component("data_loader", _data_loader())
    retries: dict[str, Any] = {"mode": "standard"}
    if session.get_config_variable("max_attempts") is None:
        retries["total_max_attempts"] = MAX_ATTEMPTS
    credentials = session.get_credentials()
    if credentials is None:
        raise NoCredentialsError
    frozen = credentials.get_frozen_credentials()
    for secret in (frozen.secret_key, frozen.token):
        remember(secret or "")
    # Newer checksums are unknown to many servers; what is read is checked by its SHA-256, and
    # what is written by its MD5.
    settings = Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
        retries=retries,
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    return session.create_client("s3", config=settings)


@cache
def _data_loader() -> Any:
    """Reads botocore's descriptions of services, once: it is most of the time of a connection."""
    from botocore.loaders import create_loader

    return create_loader()


def _broken_connections() -> tuple[type[Exception], ...]:
    from botocore import exceptions as aws

    return (
        aws.IncompleteReadError,
        aws.ReadTimeoutError,
        aws.ResponseStreamingError,
    )


def _client_error(error: Any, address: BucketAddress) -> BucketError:
    code = _code_of(error)
    if code in _CHANGED_CODES:
        return ObjectChanged(
            f"{address} was written by another process meanwhile: run the same command"
            " again."
        )
    if code in _NO_CONDITIONS_CODES:
        return NoConditions(f"{address}: the server does not support this request.")
    if code in _MISSING_CODES:
        return ObjectMissing(f"There is no object {address}: check the address.")
    message = error.response.get("Error", {}).get("Message", "")
    advice = _ADVICE_BY_CODE.get(code, _shorten(f"{message}".rstrip(".")))
    return BucketError(f"{address} cannot be used: {advice} ({_shorten(code)}).")


def _code_of(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _shorten(error: object) -> str:
    """A server's or a library's message on one line, without secrets."""
    line = " ".join(mask(without_login(str(error))).split()).rstrip(".")
    return printable(line)[:MAX_REASON_CHARS]


def _condition(if_etag: str, if_absent: bool) -> dict[str, str]:
    if if_absent:
        return {"IfNoneMatch": "*"}
    return {"IfMatch": if_etag} if if_etag else {}


def _md5(content: bytes) -> bytes:
    return hashlib.md5(content, usedforsecurity=False).digest()


def _base64(digest: bytes) -> str:
    return b64encode(digest).decode()
