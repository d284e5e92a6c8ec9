"""The file system of S3: missing files are errors as on a disk, others say so (s3fs 2026.9)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import fsspec
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    PartialCredentialsError,
)
from fsspec.asyn import _run_coros_in_chunks, sync
from s3fs import S3FileSystem
from s3fs.core import MANAGED_COPY_THRESHOLD, S3_RETRYABLE_ERRORS

from headgate.errors import Domain, StoreError

_REFUSALS = (NoCredentialsError, PartialCredentialsError, PermissionError)
# A condition of a write does not hold.
_CONDITION = {"PreconditionFailed", "412"}
# The same file is being written.
_CONFLICTS = {"ConditionalRequestConflict", "OperationAborted", "409"}
_CONFLICT_PAUSES = (0.1, 0.3, 1.0)

# Codes of what S3 does not remove however often it is asked.
_DENIALS = {"AccessDenied", "MethodNotAllowed", "InvalidObjectState"}
# The longest time that a command waits for one answer; s3fs would repeat the request for minutes.
ANSWERED_WITHIN_S = 20.0
_COPIES = {"copy_object", "upload_part_copy", "complete_multipart_upload"}
_SMALL = 1 << 20
# The most objects that one request removes.
_DELETED = 1000


class S3Files(S3FileSystem):  # type: ignore[misc] # s3fs has no types
    """Raises StoreError if the store cannot be reached, or refuses."""

    # Beside s3fs's own, which the user's code may use.
    protocol = ("s3a",)

    async def _isfile(self, path: str) -> bool:
        # fsspec's own takes every error for a missing file.
        try:
            return str((await self._info(path))["type"]) == "file"
        except FileNotFoundError:
            return False

    async def _cat_file(self, path: str, *args: Any, **named: Any) -> bytes:
        with _naming_cut_answers():
            return bytes(await super()._cat_file(path, *args, **named))

    async def _get_file(self, *args: Any, **named: Any) -> None:
        with _naming_cut_answers():
            await super()._get_file(*args, **named)

    async def _call_s3(self, *args: Any, **kwargs: Any) -> Any:
        try:
            async with asyncio.timeout(None if _is_long(args[0], kwargs) else ANSWERED_WITHIN_S):
                return await super()._call_s3(*args, **kwargs)
        except FileNotFoundError as error:
            if _code_of(error) != "NoSuchBucket":
                raise
            bucket = kwargs.get("Bucket", "")
            raise StoreError(
                "STORE_REFUSED",
                f"cannot use S3: there is no bucket {bucket!r}",
                hint=f"aws s3 mb s3://{bucket}",
                domain=Domain.EXTERNAL,
            ) from error
        except FileExistsError:
            raise
        except _REFUSALS as error:
            raise StoreError(
                "STORE_REFUSED",
                f"cannot use S3: {error}",
                hint="check AWS_PROFILE or AWS_ACCESS_KEY_ID, and the permissions on the bucket",
                domain=Domain.EXTERNAL,
            ) from error
        except (BotoCoreError, OSError) as error:
            if _code_of(error) in _CONDITION:
                raise FileExistsError(str(error)) from error
            problem = str(error) or f"no answer within {ANSWERED_WITHIN_S:g} s"
            raise _unavailable(problem) from error

    def put_if(self, path: str, content: bytes, mark: str | None) -> str | None:
        """Write a small file under a condition; return its mark, or None if that does not hold.

        Args:
            mark: Of the file that is replaced; None to write it only if there is none.
        """
        try:
            return str(sync(self.loop, self._put_if, path, content, mark)["ETag"])
        except (FileExistsError, FileNotFoundError):
            return None

    async def _put_if(self, path: str, content: bytes, mark: str | None) -> Any:
        bucket, key, _ = self.split_path(path)
        condition = {"IfNoneMatch": "*"} if mark is None else {"IfMatch": mark}
        request = {"Bucket": bucket, "Key": key, "Body": content, **condition}
        for pause in _CONFLICT_PAUSES:
            try:
                return await self._call_s3("put_object", **request)
            except StoreError as error:
                # Another request for the same file was under way: whether the condition holds is
                # not known yet.
                if error.__cause__ is None or _code_of(error.__cause__) not in _CONFLICTS:
                    raise
            await asyncio.sleep(pause)
        return await self._call_s3("put_object", **request)

    def get_marked(self, path: str) -> tuple[bytes, str]:
        """Return the content of a small file, and its mark, which differs once it has changed."""
        return sync(self.loop, self._get_marked, path)  # type: ignore[no-any-return]

    async def _get_marked(self, path: str) -> tuple[bytes, str]:
        bucket, key, _ = self.split_path(path)
        answer = await self._call_s3("get_object", Bucket=bucket, Key=key)
        with _naming_cut_answers():
            async with answer["Body"] as body:
                return await body.read(), str(answer["ETag"])

    def list_all(self, folder: str, prefix: str = "") -> list[dict[str, Any]]:
        """Return the objects below a folder, sorted by name; none if it does not exist.

        s3fs's own `find` asks two more questions about a folder without objects.

        Args:
            folder: Its path, without a slash at the end.
            prefix: Of the names below it.
        """
        listed = sync(self.loop, self._lsdir, folder, delimiter="", prefix=prefix)
        return [info for info in listed if info["type"] == "file"]

    async def _rm(self, path: str | Sequence[str], recursive: bool = False, **named: Any) -> Any:
        if recursive:
            return await super()._rm(path, recursive=True, **named)
        # s3fs's own takes names with brackets and asterisks for patterns.
        paths = [path] if isinstance(path, str) else list(path)
        groups = [paths[start : start + _DELETED] for start in range(0, len(paths), _DELETED)]
        removals = [self._bulk_delete(group) for group in groups]
        await _run_coros_in_chunks(removals, batch_size=3, nofiles=True)
        return None

    async def _bulk_delete(self, pathlist: Sequence[str], **named: Any) -> list[str]:
        """Remove objects of one bucket; nothing happens if one is gone.

        S3 answers such a request with success, and lists what it did not remove; s3fs's own ignores
        that list.
        """
        keys = [self.split_path(path)[:2] for path in pathlist]
        if not keys:
            return []
        answer = await self._call_s3(
            "delete_objects",
            named,
            Bucket=keys[0][0],
            Delete={"Objects": [{"Key": key} for _, key in keys], "Quiet": True},
        )
        for failure in answer.get("Errors", ()):
            raise _not_removed(f"{keys[0][0]}/{failure.get('Key')}", failure)
        return list(pathlist)

    def copy_all(self, files: Sequence[tuple[str, str, int]]) -> None:
        """Copy files within the store, several at a time.

        One request a file: s3fs's own copy asks for the size of each before.

        Args:
            files: The path of each, the path of its copy, and its size.
        """
        copies = [self._copy_sized(*file) for file in files]
        sync(self.loop, _run_coros_in_chunks, copies, batch_size=self.batch_size, nofiles=True)

    async def _copy_sized(self, source: str, target: str, size: int) -> None:
        if size <= MANAGED_COPY_THRESHOLD:
            await self._copy_basic(source, target)
            return
        try:
            await self._copy_managed(source, target, size)
        except BaseException:
            # The first error counts.
            with contextlib.suppress(StoreError):
                await self._abort_uploads(target)
            raise

    def abort_uploads(self, folder: str) -> int:
        """Remove the parts of files below a folder that were not written whole.

        No process may be writing there. Nothing happens where the bucket permits no list of them.

        Returns:
            The number of files.
        """
        try:
            return int(sync(self.loop, self._abort_uploads, f"{folder}/"))
        except StoreError as error:
            if error.code != "STORE_REFUSED":
                raise
            return 0

    async def _abort_uploads(self, prefix: str) -> int:
        bucket, key, _ = self.split_path(prefix)
        markers: dict[str, str] = {}
        aborted = 0
        while True:
            listed = await self._call_s3(
                "list_multipart_uploads", Bucket=bucket, Prefix=key, **markers
            )
            for upload in listed.get("Uploads", ()):
                with contextlib.suppress(FileNotFoundError):
                    await self._abort_mpu(bucket, upload["Key"], upload["UploadId"])
                    aborted += 1
            if not listed.get("IsTruncated"):
                return aborted
            markers = {name: listed[f"Next{name}"] for name in ("KeyMarker", "UploadIdMarker")}


@contextlib.contextmanager
def _naming_cut_answers() -> Iterator[None]:
    """Raise STORE_UNAVAILABLE if the content of a file arrives in part only."""
    try:
        yield
    except (BotoCoreError, *S3_RETRYABLE_ERRORS) as error:
        raise _unavailable(f"an answer was cut off ({error or type(error).__name__})") from error


def _unavailable(problem: str) -> StoreError:
    return StoreError(
        "STORE_UNAVAILABLE",
        f"cannot use S3: {problem}",
        hint="check the network, AWS_REGION and AWS_ENDPOINT_URL_S3",
        domain=Domain.EXTERNAL,
        retryable=True,
    )


def _is_long(method: str, request: Mapping[str, Any]) -> bool:
    """Tell whether the time of a request depends on the size of a file."""
    return method in _COPIES or len(request.get("Body", b"")) > _SMALL


def _code_of(error: BaseException) -> str:
    """Return S3's code of an error; empty if S3 did not answer."""
    cause = error.__cause__
    return str(cause.response["Error"].get("Code")) if isinstance(cause, ClientError) else ""


def _not_removed(path: str, failure: Mapping[str, Any]) -> StoreError:
    code = str(failure.get("Code"))
    refused = code in _DENIALS
    return StoreError(
        "STORE_REFUSED" if refused else "STORE_UNAVAILABLE",
        f"cannot remove s3a://{path} from S3: {code} {failure.get('Message') or ''}".rstrip(),
        hint="check the permission s3:DeleteObject on the bucket"
        if refused
        else "check the network, AWS_REGION and AWS_ENDPOINT_URL_S3",
        domain=Domain.EXTERNAL,
        retryable=not refused,
    )


def register() -> None:
    """Make addresses that begin with `s3a:` use this file system in this process."""
    fsspec.register_implementation("s3a", S3Files, clobber=True)
