"""Column types that mean the same on SQLite and PostgreSQL.

Databases disagree about what they take for a number, a truth value or an order of text. These types leave them no
room: every value is checked before a driver sees it, stored in a form both engines keep exactly, and compared byte by
byte. SQLAlchemy sees ordinary types; the hot path uses the same functions without SQLAlchemy, as a ``Codec``.

========= ========================== ===================================== ======================
type      value in Python            stored as (SQLite / PostgreSQL)       in a change
========= ========================== ===================================== ======================
Text      ``str`` without NUL        TEXT / TEXT COLLATE "C"               text
Integer   ``int`` of 64 bits         INTEGER / BIGINT                      number
Boolean   ``bool``                   INTEGER 0 or 1 / BOOLEAN              ``true``, ``false``
Real      finite ``float``           REAL / DOUBLE PRECISION               number
Exact(s)  ``Decimal``                INTEGER / BIGINT, count of 10**-s     ``{"$decimal": "25"}``
Blob      ``bytes``                  BLOB / BYTEA                          ``{"$bytes": "..."}``
Day       ``str`` "2026-03-01"       TEXT / TEXT COLLATE "C"               text
Instant   ``str`` UTC, whole seconds TEXT / TEXT COLLATE "C"               text
========= ========================== ===================================== ======================

A negative zero is stored as zero. Null is allowed wherever the column allows it.
"""

import operator
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator, TypeEngine

from agent_envs.state import codecs
from agent_envs.state.codecs import Codec


class Text(TypeDecorator[str]):
    """Unicode text, ordered by code point."""

    impl = sa.Text
    cache_ok = True
    codec = codecs.TEXT

    def load_dialect_impl(self, dialect: sa.Dialect) -> TypeEngine[Any]:
        """PostgreSQL's default order is the server's locale; "C" is the same everywhere."""
        return _collated(dialect)

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> Any:
        """Check the value."""
        return self.codec.to_driver(value)


class _Arithmetic(TypeDecorator.Comparator[Any], sa.BigInteger.Comparator[Any]):
    """What calculating in SQL with counts and amounts gives; what would give a wrong scale is refused."""

    def _adapt_expression(self, op: Any, other_comparator: Any) -> Any:
        left, right = self.type, other_comparator.type
        amounts = [kind for kind in (left, right) if isinstance(kind, Exact)]
        if not amounts:
            return super()._adapt_expression(op, other_comparator)
        same = len(amounts) == 2 and amounts[0].scale == amounts[1].scale
        if (op in (operator.add, operator.sub) and same) or (op is operator.mul and len(amounts) == 1):
            return op, amounts[0]
        raise ValueError(
            f"{op.__name__} of {left!r} and {right!r} has no exact result in SQL: add and subtract amounts of one "
            "scale, multiply them by whole numbers, and do the rest in Python"
        )


class Integer(TypeDecorator[int]):
    """A whole number between -2**63 and 2**63 - 1."""

    comparator_factory = _Arithmetic

    impl = sa.BigInteger
    cache_ok = True
    codec = codecs.INTEGER

    def load_dialect_impl(self, dialect: sa.Dialect) -> TypeEngine[Any]:
        """SQLite's strict tables know INTEGER only, which has 64 bits there."""
        return dialect.type_descriptor(sa.BigInteger() if dialect.name == "postgresql" else sa.INTEGER())

    def process_bind_param(self, value: int | None, dialect: sa.Dialect) -> Any:
        """Check the value."""
        return self.codec.to_driver(value)


class Boolean(TypeDecorator[bool]):
    """True or false; numbers and texts are neither."""

    impl = sa.Boolean
    cache_ok = True
    codec = codecs.BOOLEAN

    def load_dialect_impl(self, dialect: sa.Dialect) -> TypeEngine[Any]:
        """SQLite has no truth values of its own."""
        return dialect.type_descriptor(sa.Boolean() if dialect.name == "postgresql" else sa.INTEGER())

    def process_bind_param(self, value: bool | None, dialect: sa.Dialect) -> Any:
        """Check the value."""
        return self.codec.to_driver(value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> bool | None:
        """Make SQLite's 0 and 1 truth values again."""
        return None if value is None else bool(value)


class Real(TypeDecorator[float]):
    """A finite IEEE double. For money use `Exact`."""

    impl = sa.Double
    cache_ok = True
    codec = codecs.REAL

    def load_dialect_impl(self, dialect: sa.Dialect) -> TypeEngine[Any]:
        """SQLite's strict tables know REAL only, which is a double there."""
        return dialect.type_descriptor(sa.Double() if dialect.name == "postgresql" else sa.REAL())

    def process_bind_param(self, value: float | None, dialect: sa.Dialect) -> Any:
        """Check the value."""
        return self.codec.to_driver(value)


class Exact(TypeDecorator[Decimal]):
    """An exact decimal number: stored as a 64-bit count of ``10**-scale``, so sums and comparisons are exact.

    Args:
        scale: Decimal places, 0 to 18. Money is ``Exact(4)``.
    """

    impl = sa.BigInteger
    cache_ok = True
    comparator_factory = _Arithmetic

    def __init__(self, scale: int) -> None:
        """Check the scale."""
        if type(scale) is not int or not 0 <= scale <= 18:
            raise ValueError(f"scale {scale!r} of an Exact column is not a whole number from 0 to 18")
        super().__init__()
        self.scale = scale
        self.codec = codecs.exact(scale)

    def load_dialect_impl(self, dialect: sa.Dialect) -> TypeEngine[Any]:
        """SQLite's strict tables know INTEGER only, which has 64 bits there."""
        return dialect.type_descriptor(sa.BigInteger() if dialect.name == "postgresql" else sa.INTEGER())

    def coerce_compared_value(self, op: Any, value: Any) -> TypeEngine[Any]:
        """A factor is a plain number: ``price * 2`` must not scale the 2 as well."""
        return Integer() if op is operator.mul and type(value) is int else self

    def process_bind_param(self, value: Decimal | int | None, dialect: sa.Dialect) -> Any:
        """Turn the amount into a count."""
        return self.codec.to_driver(value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Decimal | None:
        """Turn the count into an amount."""
        return None if value is None else codecs.amount(int(value), self.scale)

    def process_literal_param(self, value: Any, dialect: sa.Dialect) -> str:
        """Write the count into the statement text."""
        return str(self.codec.to_driver(value))


class Blob(TypeDecorator[bytes]):
    """Bytes."""

    impl = sa.LargeBinary
    cache_ok = True
    codec = codecs.BLOB

    def process_bind_param(self, value: bytes | None, dialect: sa.Dialect) -> Any:
        """Check the value."""
        return self.codec.to_driver(value)


class Day(TypeDecorator[str]):
    """A calendar day as ISO text: ``2026-03-01``. Text order is the order of time."""

    impl = sa.Text
    cache_ok = True
    codec = codecs.DAY

    def load_dialect_impl(self, dialect: sa.Dialect) -> TypeEngine[Any]:
        """Text ordered by code point."""
        return _collated(dialect)

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> Any:
        """Check the value."""
        return self.codec.to_driver(value)


class Instant(TypeDecorator[str]):
    """A moment in UTC as ISO text in whole seconds: ``2026-03-01T09:30:00Z``. Text order is the order of time."""

    impl = sa.Text
    cache_ok = True
    codec = codecs.INSTANT

    def load_dialect_impl(self, dialect: sa.Dialect) -> TypeEngine[Any]:
        """Text ordered by code point."""
        return _collated(dialect)

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> Any:
        """Check the value."""
        return self.codec.to_driver(value)


PORTABLE = (Text, Integer, Boolean, Real, Exact, Blob, Day, Instant)
"""The types a fixture's columns may have."""


def codec_of(kind: TypeEngine[Any]) -> Codec:
    """The codec for any SQLAlchemy type that may appear in a statement.

    Types of this module have their own. What SQLAlchemy infers for counts, comparisons, limits and text functions is
    mapped to the nearest one; anything else takes and gives driver values as they are.
    """
    if isinstance(kind, PORTABLE):
        return kind.codec
    for family, codec in _INFERRED:
        if isinstance(kind, family):
            return codec
    return codecs.ANY


_INFERRED: tuple[tuple[type[TypeEngine[Any]], Codec], ...] = (
    (sa.Boolean, codecs.BOOLEAN),
    (sa.Integer, codecs.INTEGER),
    (sa.Float, codecs.REAL),
    (sa.String, codecs.TEXT),
    (sa.LargeBinary, codecs.BLOB),
)


def _collated(dialect: sa.Dialect) -> TypeEngine[Any]:
    return sa.Text(collation="C") if dialect.name == "postgresql" else sa.Text()
