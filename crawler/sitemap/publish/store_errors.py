"""What is said when a request to an object store fails, and of an environment that cannot be used.

The words of the store and of the library are read, but never shown, as they may contain signed URLs or the
values of variables: at most the HTTP status and the error code, which is letters only.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from crawler.errors import ConfigError
from crawler.settings.object_url import ObjectUrl
from crawler.settings.values import duration_words


class Cloud(Struct, frozen=True):
    """What is said of one kind of store, and what of the environment is checked."""

    name: str
    variables: re.Pattern[str]  # names of those that are sent in headers
    endpoints: tuple[str, ...]  # variables with the address of a store
    credentials: str  # the usual ones


CLOUDS: Final[Mapping[str, Cloud]] = {
    "s3": Cloud(
        "S3",
        re.compile(r"AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|(DEFAULT_)?REGION)"),
        ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    ),
    "gs": Cloud(
        "Google Cloud Storage",
        re.compile(r"GOOGLE_BEARER_TOKEN"),
        ("GOOGLE_BASE_URL",),
        "GOOGLE_APPLICATION_CREDENTIALS",
    ),
    "az": Cloud(
        "Azure Blob Storage",
        re.compile(r"AZURE_(STORAGE|CLIENT|TENANT|AUTHORITY)_\w+"),
        ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
        "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    ),
}

_CODE: Final = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")
_STATUS: Final = re.compile(r"status code: (\d{3})")
_NO_CREDENTIALS: Final = re.compile(r"169\.254\.169\.254|token request|redential")
_TIMED_OUT: Final = re.compile(r"kind: Timeout|[Tt]imed ?[Oo]ut")
_NOT_REACHED: Final = re.compile(r"kind: Connect|error sending request")
_PASSING: Final = frozenset({"408", "429", "500", "502", "503", "504"})
_NO_BUCKET: Final = frozenset({"NoSuchBucket", "ContainerNotFound", "InvalidBucketName", "AccountNotFound"})
_REGION: Final = frozenset(
    {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}
)
_CLOCK: Final = frozenset({"RequestTimeTooSkewed"})
_NOT_ACCEPTED: Final = frozenset({
    "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired",
    "InvalidSecurity", "AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation",
    "Unauthorized",
})  # fmt: skip


class StoreError(OSError):
    """A request failed; `str(error)` is the reason, as a part of a sentence."""


def check_bucket(error: Exception) -> None:
    """A missing bucket looks like a missing object."""
    if code_of(str(error)) in _NO_BUCKET:
        raise StoreError("there is no such bucket") from None


def code_of(text: str) -> str:
    """The error code of the store, in the words of the library."""
    found = _CODE.search(text)
    return found[1] if found else ""


def may_pass(error: BaseException) -> bool:
    """Whether a request is worth another try."""
    text = str(error)
    if isinstance(error, StoreError) or "builder error" in text:
        return False
    if status := _STATUS.search(text):
        return status[1] in _PASSING
    return bool(_TIMED_OUT.search(text) or _NOT_REACHED.search(text))


def reason(url: ObjectUrl, error: BaseException, seconds: float) -> str:
    """Why a request failed, as a part of a sentence. `seconds`: the time that it had."""
    cloud, text, kind = CLOUDS[url.scheme], str(error), type(error).__name__
    code, status = code_of(text), _STATUS.search(text)
    said = " ".join(filter(None, [status[1] if status else "", code]))
    cases = (
        (code in _NO_BUCKET, "there is no such bucket"),
        (code in _REGION, f"the bucket is in another region ({said}): set AWS_REGION"),
        (code in _CLOCK, "the clock of this machine is wrong"),
        (
            not code and _NO_CREDENTIALS.search(text),
            f"there are no valid credentials in the environment: set {cloud.credentials}",
        ),
        (
            kind == "UnauthenticatedError" or code in _NOT_ACCEPTED,
            f"the credentials in the environment are not accepted ({said}): check {cloud.credentials}",
        ),
        (
            kind == "PermissionDeniedError",
            f"access is denied ({said}): the credentials need the permissions to get, put and delete objects "
            "below the prefix, and to list the bucket",
        ),
        (
            code == "NotImplemented" or kind == "NotSupportedError",
            "the store does not support what is needed (conditional puts)",
        ),
        (status, f"the store answered {said}"),
        (_TIMED_OUT.search(text), f"the store did not answer within {duration_words(seconds)}"),
        ("builder error" in text, "the address of the store is not valid"),
        (_NOT_REACHED.search(text), "the store cannot be reached"),
    )
    return next((words for applies, words in cases if applies), "the answer of the store was not understood")


def check_environment(url: ObjectUrl, environ: Mapping[str, str]) -> None:
    """Raises `ConfigError` for values on which the library would panic. It does not show them."""
    cloud = CLOUDS[url.scheme]
    for name in sorted(filter(cloud.variables.fullmatch, environ)):
        if re.search(r"[\0-\x1f\x7f]", environ[name]):
            raise ConfigError(f"{name} contains a line break or another control character, maybe at its end.")
    for name in cloud.endpoints:
        if name in environ and not re.fullmatch(r"https?://[^/?#\s@\\]+(/[^?#\s]*)?", environ[name]):
            raise ConfigError(f"{name} must be an address such as https://storage.example.com.")
