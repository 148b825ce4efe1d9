"""Files to nouns: an inventory, configs/ and roles/ become a Wish, or all their Problems at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from launcher.load.choice import Choice
from launcher.load.collect import Collector
from launcher.load.data import Data, roots_of
from launcher.load.document import Document
from launcher.load.form import InventoryFile, inventory_schema, read_choices, read_file
from launcher.load.inventory import make_inventory
from launcher.load.kept import KEPT_INVENTORY, kept_file, reached_as
from launcher.load.monitoring import read_monitoring, settings_problems
from launcher.load.profile import read_profile, read_stack
from launcher.load.roles import read_roles
from launcher.load.rules import beside, no_such_file, profile_problems
from launcher.load.secrets import open_secrets
from launcher.load.ssh_config import host_name
from launcher.model.inventory import Inventory
from launcher.model.monitoring import Monitoring
from launcher.model.problem import InputError
from launcher.model.profile import place_of
from launcher.model.wish import Wish

__all__ = ["Data", "inventory_schema", "load", "load_from", "load_kept"]


def load(
    path: Path | str,
    *,
    data_dir: Path | None = None,
    environment: Mapping[str, str] | None = None,
    text: str | None = None,
) -> Wish:
    """Everything an inventory says and leads to. InputError with all Problems of all files.

    `data_dir` is laid over the shipped roles/ and configs/. Secrets are opened only where `environment` is
    given, for that may run commands; without it only their form is checked. `text` is what the inventory is
    to say, instead of what its file says.
    """
    data = Data(roots_of(data_dir))
    if text is not None:
        data.give(Path(path), text.encode())
    return load_from(data, Path(path), environment=environment)


def load_kept(folder: Path, present: Inventory, *, environment: Mapping[str, str] | None = None) -> Wish:
    """What a `Wish.files` that was laid out in `folder` leads to, whatever is shipped now.

    How hosts are reached, where they are and where secrets come from are not its own to say: that is as
    `present` has it. InputError, too, where it needs a host that `present` does not have.
    """
    return load_from(Data((folder,)), folder / KEPT_INVENTORY, environment=environment, present=present)


def load_from(
    data: Data,
    path: Path,
    *,
    environment: Mapping[str, str] | None = None,
    present: Inventory | None = None,
) -> Wish:
    """`load` with the data it is to read from, or `load_kept`."""
    document = data.document(path)
    problems = Collector()
    file = problems.attempt(lambda: read_file(document))
    if present and file:
        file = kept_file(file, present, document.path)
    choices = read_choices(document)
    stack = profile = roles = inventory = monitoring = None
    if "stack" in choices:
        stack, more = read_stack(choices["stack"], data, problems)
        choices |= more
    if stack is not None:
        profile = read_profile(choices, stack, data, problems)
        problems.keep(profile_problems(profile))
        roles = read_roles(stack, data, problems, platform=profile.platform)
    if file is not None:
        layout = profile.layout if profile else None
        look_up = _host_names(file, document, data)
        inventory = make_inventory(file, document, layout=layout, host_name=look_up, problems=problems)
        monitoring = _monitoring(inventory, data, problems)
    problems.raise_any()
    assert inventory is not None
    assert profile is not None
    assert roles is not None
    if present:
        inventory = reached_as(inventory, present)
    secrets = {}
    if environment is not None:
        folder = Path(inventory.path).parent
        secrets = dict(open_secrets(inventory.secrets, environment=environment, beside=folder))
    files = {**data.files, KEPT_INVENTORY: data.content(path)}
    return Wish(
        inventory,
        profile,
        roles,
        data_digest=data.digest,
        secrets=secrets,
        files=files,
        monitoring=monitoring,
    )


def _monitoring(inventory: Inventory, data: Data, problems: Collector) -> Monitoring | None:
    settings, found = inventory.monitoring, None
    if settings.host:
        sla = Choice(settings.sla, place_of(settings, "sla"))
        found = problems.attempt(lambda: read_monitoring(data, sla))
    problems.keep(settings_problems(settings, found, inventory.hosts))
    return found


def _host_names(file: InventoryFile, document: Document, data: Data) -> Callable[[str], str]:
    """Looks hosts up in the inventory's ssh_config, or the user's; reads it only if asked."""

    def look_up(name: str) -> str:
        path = beside(document.path, file.ssh.config or "~/.ssh/config")
        if path.is_file():
            return host_name(data.text(path), name)
        if file.ssh.config:
            raise InputError(no_such_file(document, "config", file.ssh.config))
        return ""

    return look_up
