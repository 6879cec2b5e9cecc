"""Encryption of a sealed suite: AES-256-GCM under a key that scrypt derives from a passphrase.

The public header is authenticated together with the secret, so neither can be exchanged. A second derived key signs
entries of the ledger (HMAC-SHA-256): who doesn't know the passphrase can't write or rewrite one unseen.
"""

import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field

from agent_envs.contract import AgentEvalError, Model, canonical_json

KEY_VARIABLE = "AGENTEVAL_SUITE_PASSPHRASE"
_SHORTEST = 12
_LONGEST = 4096
_HEX = r"^[0-9a-f]*$"


class SuiteError(AgentEvalError):
    """A sealed suite can't be made or opened, or was tampered with; the message says where."""


class Kdf(Model):
    """How the passphrase becomes a key. Bounds keep a forged file from taking all memory."""

    name: Literal["scrypt"] = "scrypt"
    n: int = Field(default=2**16, ge=2**14, le=2**18)
    r: int = Field(default=8, ge=8, le=8)
    p: int = Field(default=1, ge=1, le=4)
    salt: str = Field(pattern=_HEX, min_length=32, max_length=64)
    """Hexadecimal."""


class Keys(NamedTuple):
    """The two keys."""

    secret: bytes
    """Encrypts the tasks."""
    ledger: bytes
    """Signs the ledger."""

    def seal(self, value: Any) -> str:
        """Signature of a JSON value."""
        return hmac.new(self.ledger, canonical_json(value), hashlib.sha256).hexdigest()

    def sealed(self, value: Any, seal: str) -> bool:
        """Whether a signature is that of a value."""
        return hmac.compare_digest(self.seal(value).encode(), seal.encode("utf-8", "replace"))


def read_passphrase(key_file: Path | None = None) -> bytes:
    """The passphrase from a file, or without one from the environment variable `KEY_VARIABLE`.

    Raises:
        SuiteError: There is none, or it is shorter than 12 bytes.
    """
    if key_file is not None:
        try:
            with key_file.open("rb") as file:
                passphrase = file.read(_LONGEST + 1)
        except OSError as error:
            raise SuiteError(f"{key_file}: the key file can't be read: {error}") from None
        where = str(key_file)
    else:
        passphrase, where = os.environ.get(KEY_VARIABLE, "").encode("utf-8", "surrogateescape"), KEY_VARIABLE
        if not passphrase:
            raise SuiteError(f"no passphrase: name a key file, or set the environment variable {KEY_VARIABLE}")
    return checked(passphrase.rstrip(b"\r\n"), where)


def checked(passphrase: bytes, where: str = "the passphrase") -> bytes:
    """The passphrase, if it is one.

    Raises:
        SuiteError: It is shorter than 12 bytes or longer than 4096.
    """
    if not _SHORTEST <= len(passphrase) <= _LONGEST:
        raise SuiteError(f"{where}: {len(passphrase)} bytes; a passphrase has {_SHORTEST} to {_LONGEST}")
    return passphrase


def derive(passphrase: bytes, kdf: Kdf) -> Keys:
    """The keys of a passphrase.

    Raises:
        SuiteError: The parameters are none of scrypt's.
    """
    try:
        derived = hashlib.scrypt(
            checked(passphrase),
            salt=bytes.fromhex(kdf.salt),
            n=kdf.n,
            r=kdf.r,
            p=kdf.p,
            maxmem=192 * kdf.n * kdf.r + 2**20,
            dklen=64,
        )
    except ValueError as error:
        raise SuiteError(f"the key can't be derived with n={kdf.n}, r={kdf.r}, p={kdf.p}: {error}") from None
    return Keys(derived[:32], derived[32:])


def encrypt(keys: Keys, secret: bytes, header: bytes) -> tuple[bytes, bytes]:
    """Nonce and ciphertext; the header is authenticated with it.

    Raises:
        SuiteError: The package ``cryptography`` isn't installed.
    """
    nonce = secrets.token_bytes(12)
    return nonce, _cipher(keys).encrypt(nonce, secret, header)


def decrypt(keys: Keys, nonce: bytes, ciphertext: bytes, header: bytes) -> bytes:
    """The secret.

    Raises:
        SuiteError: The passphrase is another one, header or ciphertext was changed, or ``cryptography`` isn't there.
    """
    cipher = _cipher(keys)
    from cryptography.exceptions import InvalidTag

    try:
        return bytes(cipher.decrypt(nonce, ciphertext, header))
    except (InvalidTag, ValueError):
        raise SuiteError("it doesn't open: the passphrase is another one, or the file was changed") from None


def _cipher(keys: Keys) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise SuiteError("sealed suites need the package 'cryptography': pip install 'agent-envs[sealed]'") from None
    return AESGCM(keys.secret)
