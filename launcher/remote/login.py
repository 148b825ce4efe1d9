"""Keys, Login: the private keys that a user logs in with, and the order in which they are tried."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import paramiko
from paramiko.auth_strategy import AuthSource, AuthStrategy, SourceResult

USUAL_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")


class Keys:
    """Private key files. Each is read once."""

    def __init__(self, folder: Path) -> None:
        """Relative paths start at `folder`."""
        self._folder = folder
        self._lock = threading.Lock()
        self._read: dict[Path, paramiko.PKey | str] = {}

    def path(self, text: str) -> Path:
        """Where the file is that `text` names."""
        return self._folder / Path(text).expanduser()

    def read(self, text: str) -> paramiko.PKey | str:
        """The key in the file that `text` names, or why it cannot be used."""
        path = self.path(text)
        with self._lock:
            if path not in self._read:
                self._read[path] = read_key(path)
            return self._read[path]

    def strategy(self, ssh_config: Mapping[str, Any], fabric_config: Any, username: str) -> Login:
        """How to log in; fabric calls this for each connection that it opens (`strategy_class`)."""
        return Login(self, ssh_config, fabric_config.authentication.identities, username)


class Key(AuthSource):
    """One key to try; its text names it for people."""

    def __init__(self, username: str, name: str, key: paramiko.PKey | str) -> None:
        """A `key` that is text says why there is none."""
        super().__init__(username)
        self._name = name
        self._key = key

    def __str__(self) -> str:
        return f"{self._name} ({self._key})" if isinstance(self._key, str) else self._name

    def authenticate(self, transport: paramiko.Transport) -> list[str]:
        """Log in with it; SSHException if that cannot be done."""
        if isinstance(self._key, str):
            raise paramiko.SSHException(self._key)
        still_wanted = transport.auth_publickey(self.username, self._key)
        if still_wanted:  # a second factor; a key is all that there is
            raise paramiko.AuthenticationException("another factor is wanted")
        return still_wanted


class Login(AuthStrategy):
    """Tries the named files, then the ssh agent's keys, then the usual files.

    Its time is the `auth_timeout` that the transport has when it begins, for all keys together.
    """

    def __init__(
        self, keys: Keys, ssh_config: Mapping[str, Any], identities: list[str], username: str
    ) -> None:
        super().__init__(ssh_config)  # type: ignore[arg-type]  # fabric gives what it looked up for the host
        self._keys = keys
        self._username = username
        self._named = [*identities, *ssh_config.get("identityfile", [])]
        self._only_named = ssh_config.get("identitiesonly") == "yes"

    def authenticate(self, transport: paramiko.Transport) -> list[SourceResult]:
        """Log in; AuthFailure, with each key that was tried, if none is taken."""
        self._transport = transport
        return super().authenticate(transport)

    def get_sources(self) -> Iterator[Key]:
        """The keys in order, until the host has refused enough of them and hangs up."""
        deadline = time.monotonic() + self._transport.auth_timeout
        for key in self.keys():
            if not self._transport.is_active():
                return
            self._transport.auth_timeout = max(0.1, deadline - time.monotonic())
            yield key

    def keys(self) -> Iterator[Key]:
        """All keys in order; those of the agent are asked for when it is their turn."""
        for path in self._named:
            yield Key(self._username, path, self._keys.read(path))
        if self._only_named:
            return
        with contextlib.closing(paramiko.Agent()) as agent:
            for key in agent.get_keys():
                yield Key(self._username, f"the ssh agent's {key.comment or key.fingerprint}", key)
        for path in () if self._named else USUAL_KEYS:
            if self._keys.path(path).is_file():
                yield Key(self._username, path, self._keys.read(path))


def read_key(path: Path) -> paramiko.PKey | str:
    """A private key, or why it cannot be used."""
    try:
        return paramiko.PKey.from_path(path)
    except FileNotFoundError:
        return "no such file"
    except paramiko.PasswordRequiredException:
        return "has a passphrase: `ssh-add` it"
    except (TypeError, ValueError, OSError, paramiko.SSHException) as problem:
        return f"not usable: {problem}"
