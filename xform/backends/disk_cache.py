"""Compiled executables kept on disk from one process to the next.

One file an executable, named by the fingerprint of all that its machine code depends on. A file holds the
SHA-256 of its payload and then the payload: a truncated or damaged file is noticed before XLA reads it.
Imports the standard library only, and little of it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import threading
import warnings

_DIGEST_SIZE = hashlib.sha256().digest_size


def fingerprint(*parts: str) -> str:
    """SHA-256 of strings, in hexadecimal; where one ends and the next begins counts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


@functools.cache
def host_features() -> str:
    """The processor and its instruction sets: machine code for one need not run on another."""
    import platform

    try:
        with open("/proc/cpuinfo") as lines:
            flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:  # not Linux
        flags = platform.processor()
    return f"{platform.system()} {platform.machine()} {flags.strip()}"


def load(directory: str, key: str) -> bytes | None:
    """What was stored under `key`, or None if there is nothing or the file is damaged."""
    try:
        with open(_path(directory, key), "rb") as file:
            content = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        warnings.warn(f"cannot read the cache of compiled programs: {error}", RuntimeWarning, stacklevel=2)
        return None
    checksum, payload = content[:_DIGEST_SIZE], content[_DIGEST_SIZE:]
    return payload if hashlib.sha256(payload).digest() == checksum else None


def store(directory: str, key: str, payload: bytes) -> None:
    """Write `payload` under `key`: other processes see all of it or nothing."""
    path = _path(directory, key)
    temporary = f"{path}.{os.getpid()}.{threading.get_ident()}.tmp"
    try:
        os.makedirs(directory, exist_ok=True)
        try:
            with open(temporary, "wb") as file:
                file.write(hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, path)
        except BaseException:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise
    except OSError as error:  # a full or read-only disk costs a compilation next time, no more
        warnings.warn(f"cannot write the cache of compiled programs: {error}", RuntimeWarning, stacklevel=2)


def _path(directory: str, key: str) -> str:
    return os.path.join(directory, f"{key}.xla")
