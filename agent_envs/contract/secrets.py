"""What must not be written down: passwords and keys, found by their name and by their form.

Specs, manifests and locks are kept, sent around and hashed. A secret in one of them is out for good, so such a value is
refused before it is written, and the message names the place, never the value. A policy that wants to say that a secret
is in use there writes `SECRET` in its place.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

SECRET = "<secret>"
"""Stands for a secret."""

_WORDS = frozenset(
    "password passwd passphrase secret secrets credential credentials authorization bearer cookie apikey".split()
)
_LAST_WORDS = frozenset(("key", "token", "auth"))
_PLURALS = frozenset(
    (("api", "keys"), ("access", "keys"), ("private", "keys"), ("access", "tokens"), ("auth", "tokens"))
)
_HARMLESS = frozenset(
    "eos_token bos_token pad_token unk_token mask_token stop_token primary_key foreign_key sort_key".split()
)
_FORMS = (
    (re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{0,20}://[^/\s:@?#]{0,200}:[^/\s@]{1,200}@"), "a URL with a password"),
    (re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{0,20}://[^/\s:@?#]{20,400}@"), "a URL with credentials"),
    (
        re.compile(r"[?&](?:api[_-]?key|key|token|access_token|password|secret|sig|signature)=[^&\s]{6,}", re.I),
        "a URL with a key",
    ),
    (re.compile(r"\b[Bb]earer\s+[A-Za-z0-9._~+/-]{16,}"), "a bearer token"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,4000}\."), "a signed token"),
    (re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"), "a private key"),
    (
        re.compile(
            r"\b(?:sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|hf_[A-Za-z0-9]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}"
            r"|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,})"
        ),
        "an access key",
    ),
)
_TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")
_SHORTEST = 8
"""Values of environment variables shorter than this are too common to be looked for."""


class Unfit(NamedTuple):
    """A place that holds what must not be written down."""

    place: str
    """Path of keys, such as ``model.headers.authorization``."""
    reason: str


def is_secret_name(name: str) -> bool:
    """Whether a key or variable is named like a secret (``api_key``, ``authToken``); ``max_tokens`` is not."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
    if not words or "_".join(words) in _HARMLESS:
        return False
    return bool(_WORDS.intersection(words)) or words[-1] in _LAST_WORDS or tuple(words[-2:]) in _PLURALS


def secret_values(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Values of the environment variables that are named like secrets."""
    found = {value for name, value in environment.items() if is_secret_name(name) and len(value) >= _SHORTEST}
    return tuple(sorted(found))


def unfit(
    value: Any, place: str = "", *, names: bool = True, known: Sequence[str] = (), roots: Sequence[str] = ()
) -> Iterator[Unfit]:
    """Every place of a JSON value that must not be written down, in the value's own order.

    Args:
        value: JSON data.
        place: Path of the value itself, for the result.
        names: Judge keys by their names; off for JSON Schemas, whose keys are other people's parameters.
        known: Secrets by value, as `secret_values` gives them; a text that contains one is unfit.
        roots: Folders of this machine; a text that is, as a whole, a path in one of them is unfit.
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            inner = f"{place}.{key}" if place else str(key)
            if names and is_secret_name(str(key)) and _holds_text(item):
                yield Unfit(inner, "is named like a secret")
            else:
                yield from unfit(item, inner, names=names, known=known, roots=roots)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from unfit(item, f"{place}.{index}" if place else str(index), names=names, known=known, roots=roots)
    elif isinstance(value, str):
        for form, what in _FORMS:
            if form.search(value):
                yield Unfit(place, f"holds {what}")
                return
        if any(secret in value for secret in known):
            yield Unfit(place, "holds the value of a secret environment variable")
        elif value.startswith("file://") or any(value == root or value.startswith(f"{root}/") for root in roots):
            yield Unfit(place, "is a path of this machine")


def _holds_text(value: Any) -> bool:
    """Whether anything but null, numbers and `SECRET` is in there."""
    if isinstance(value, str):
        return value not in ("", SECRET)
    if isinstance(value, Mapping):
        if value.get("type") in _TYPES:
            return False  # the JSON Schema of somebody's parameter
        return any(_holds_text(item) for item in value.values())
    return isinstance(value, list | tuple) and any(_holds_text(item) for item in value)
