"""The base of every noun: frozen, unknown keys refused, written as canonical JSON."""

import functools
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from agent_envs.contract.canonical import canonical_json, digest, parse_json


class Model(BaseModel):
    """Immutable data with a digest. An unknown key is an error, never ignored."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, populate_by_name=True
    )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields replaced (unchecked). What was derived from the old fields is not copied."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied

    def as_json(self) -> dict[str, Any]:
        """The value as plain JSON data."""
        return self.model_dump(mode="json", by_alias=True)

    def canonical(self) -> bytes:
        """The value as canonical JSON."""
        return canonical_json(self.as_json())

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON."""
        return digest(self.as_json())

    @classmethod
    def parse(cls, data: bytes | str) -> Self:
        """Read the value back from JSON text.

        Raises:
            ValueError: The text isn't JSON, or not such a value (then a `pydantic.ValidationError`).
        """
        return cls.model_validate(parse_json(data))  # pydantic's own parser refuses lone surrogates
