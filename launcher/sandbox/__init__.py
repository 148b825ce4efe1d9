"""Real hosts on this machine: namespaces, systemd, sshd; knows nothing of inventories and engines."""

from launcher.sandbox.fleet import Sandbox
from launcher.sandbox.host import SandboxHost

__all__ = ["Sandbox", "SandboxHost"]
