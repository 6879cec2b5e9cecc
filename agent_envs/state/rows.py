"""Row encoding and multiset hash: how a database's content becomes 64 hexadecimal digits.

**Row.** A row is the concatenation of pieces, each one tag byte, a four-byte big-endian length and a payload:

1. ``T`` and the table's name;
2. for each primary key column, in key order, ``K`` and its name;
3. for each column, in declared order, ``C`` and its name, then the value as `agent_envs.state.codecs` encodes it.

Names are UTF-8. No two different rows have the same encoding, whatever their texts contain.

**Table.** A row's element is SHAKE-256 of its encoding, 256 bytes, read as a big-endian number. A table's sum is the
sum of its rows' elements modulo 2**2048. Adding and subtracting elements keeps it up to date at a cost that follows
the rows touched, and it depends neither on the order of rows nor on how an engine stores them.

The sum is that wide for a reason. Whoever can choose rows attacks a sum of hashes with the generalised birthday
algorithm (D. Wagner, "A Generalized Birthday Problem", 2002), which needs about 2**(2*sqrt(n)) work and rows for n
bits. For 256 bits that is 2**32, within reach of an agent that may insert rows; for 2048 bits it is 2**90.
M. Bellare and D. Micciancio ("A New Paradigm for Collision-Free Hashing: Incrementality at Reduced Cost", 1997) call
the construction AdHash. Primary keys make each element occur once at most.

**Table digest.** SHA-256 of ``agenteval table 1``, a zero byte, the piece ``T`` with the name, the number of rows
(eight bytes, big-endian) and the sum (256 bytes, big-endian).

**Database digest.** SHA-256 of ``agenteval database 1``, a zero byte, the schema digest (32 bytes) and the table
digests in the order of the tables' names.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from agent_envs.state.codecs import Codec, field

MODULUS = 2**2048
_SUM_BYTES = 256

Row = tuple[Any, ...]
"""All columns of one row as driver values, in declared order."""


def row_encoder(table: str, columns: Sequence[tuple[str, Codec]], key: Sequence[str]) -> Callable[[Row], bytes]:
    """Make the function that encodes rows of one table.

    Args:
        table: Name of the table.
        columns: Name and codec of each column, in declared order.
        key: Names of the primary key columns, in key order.
    """
    head = field(b"T", table.encode()) + b"".join(field(b"K", name.encode()) for name in key)
    names = [field(b"C", name.encode()) for name, _ in columns]
    names[0] = head + names[0]
    pairs = list(zip(names, [codec.encode for _, codec in columns], strict=True))

    def encode(row: Row) -> bytes:
        return b"".join([name + encode(value) for (name, encode), value in zip(pairs, row)])  # noqa: B905  # hot path

    return encode


def element(encoded: bytes) -> int:
    """The number that a row adds to its table's sum."""
    return int.from_bytes(hashlib.shake_256(encoded).digest(_SUM_BYTES), "big")


def table_sum(encoded_rows: Iterable[bytes]) -> tuple[int, int]:
    """Number of rows and sum of a whole table."""
    count = total = 0
    for encoded in encoded_rows:
        count += 1
        total += element(encoded)
    return count, total % MODULUS


def table_digest(table: str, count: int, total: int) -> bytes:
    """Digest of one table, 32 bytes."""
    return hashlib.sha256(
        b"agenteval table 1\0"
        + field(b"T", table.encode())
        + count.to_bytes(8, "big")
        + total.to_bytes(_SUM_BYTES, "big")
    ).digest()


def database_digest(schema: bytes, tables: Iterable[bytes]) -> str:
    """Digest of a database, 64 hexadecimal digits.

    Args:
        schema: Digest of the schema, 32 bytes.
        tables: Digests of the tables, in the order of their names.
    """
    return hashlib.sha256(b"agenteval database 1\0" + schema + b"".join(tables)).hexdigest()
