"""Keys, Login: the private keys that a user logs in with, and the order in which they are tried."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import paramiko
from paramiko.auth_strategy import AuthStrategy, InMemoryPrivateKey, SourceResult

USUAL_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
NO_FILE = "no such file"


class Keys:
    """Private key files. Each is read once."""

    def __init__(self, folder: Path) -> None:
        """Relative paths start at `folder`."""
        self._folder = folder
        self._lock = threading.Lock()
        self._read: dict[str, paramiko.PKey | str] = {}

    def read(self, path: str) -> paramiko.PKey | str:
        """The key in a file, or why it cannot be used."""
        with self._lock:
            if path not in self._read:
                self._read[path] = read_key(self._folder / Path(path).expanduser())
            return self._read[path]


class Key(InMemoryPrivateKey):
    """One key to try; its text names it for people."""

    def __init__(self, username: str, name: str, key: paramiko.PKey | str) -> None:
        """A `key` that is text says why it cannot be used."""
        super().__init__(username, key)  # type: ignore[arg-type]  # text is never used to log in
        self._text = f"{name} ({key})" if isinstance(key, str) else name

    def __str__(self) -> str:
        return self._text

    def authenticate(self, transport: paramiko.Transport) -> list[str]:
        """Log in with it; SSHException if that cannot be done."""
        if isinstance(self.pkey, str):
            raise paramiko.SSHException(self.pkey)
        if super().authenticate(transport):
            raise paramiko.AuthenticationException("the host wants a second factor beside the key")
        return []


class Login(AuthStrategy):
    """Tries the named files, then the ssh agent's keys; the usual files where none is named.

    fabric makes one for each connection that it opens. Its time is the `auth_timeout` that the transport has
    when it begins, for all keys together.
    """

    def __init__(self, keys: Keys, ssh_config: Mapping[str, Any], fabric_config: Any, username: str) -> None:
        super().__init__(ssh_config)  # type: ignore[arg-type]  # fabric gives what it looked up for the host
        self._keys = keys
        self._username = username
        self._named = [*fabric_config.authentication.identities, *ssh_config.get("identityfile", [])]
        self._only_named = ssh_config.get("identitiesonly") == "yes"

    def authenticate(self, transport: paramiko.Transport) -> list[SourceResult]:
        """Log in; AuthFailure, with each key that was tried, if none is taken."""
        self._transport = transport
        return super().authenticate(transport)

    def get_sources(self) -> Iterator[Key]:
        """The keys in order, until the host has refused enough of them and hangs up."""
        deadline = time.monotonic() + self._transport.auth_timeout
        for name, key in self.candidates():
            if not self._transport.is_active():
                return
            self._transport.auth_timeout = max(0.1, deadline - time.monotonic())
            yield Key(self._username, name, key)

    def candidates(self) -> Iterator[tuple[str, paramiko.PKey | str]]:
        """All keys in order, or why one cannot be used; the agent is asked when it is its turn."""
        for path in self._named:
            yield path, self._keys.read(path)
        if self._only_named:
            return
        with contextlib.closing(paramiko.Agent()) as agent:
            for key in agent.get_keys():
                yield f"the ssh agent's {key.comment or key.fingerprint}", key
        for path in () if self._named else USUAL_KEYS:
            if (found := self._keys.read(path)) != NO_FILE:
                yield path, found


def read_key(path: Path) -> paramiko.PKey | str:
    """A private key, or why it cannot be used."""
    try:
        return paramiko.PKey.from_path(path)
    except FileNotFoundError:
        return NO_FILE
    except paramiko.PasswordRequiredException:
        return "has a passphrase: `ssh-add` it"
    except (TypeError, ValueError, OSError, paramiko.SSHException) as problem:
        return f"not usable: {problem}"
