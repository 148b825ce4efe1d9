"""An inventory file → Inventory, ranges and defaults written out; of configs/ it knows only the layout."""

from __future__ import annotations

from collections.abc import Callable

from launcher.load.collect import Collector
from launcher.load.document import Document
from launcher.load.form import InventoryFile
from launcher.load.front import address_problems
from launcher.load.hosts import read_hosts
from launcher.load.pools import read_pools
from launcher.load.rules import file_problems
from launcher.model.inventory import Inventory
from launcher.model.profile import Layout


def make_inventory(
    file: InventoryFile,
    document: Document,
    *,
    layout: Layout | None,
    host_name: Callable[[str], str],
    problems: Collector,
) -> Inventory:
    """The inventory itself; whatever cannot be is kept in `problems`, and then it is not to be used.

    `host_name` gives ssh_config's HostName of a host without an address, or nothing.
    """
    problems.keep(file_problems(file, document))
    hosts = read_hosts(file, document, host_name=host_name, problems=problems)
    pools = read_pools(file, document, hosts=hosts, layout=layout, problems=problems)
    problems.keep(address_problems(file, document, hosts or {}, pools))
    return Inventory(
        cluster=file.cluster,
        stack=file.stack,
        hosts=hosts or {},
        ssh=file.ssh,
        paths=file.paths,
        layout=file.layout,
        hardware=file.hardware,
        model=file.model,
        platform=file.platform,
        pools=pools,
        settings={str(scope): settings for scope, settings in file.settings.items()},
        environment={str(scope): settings for scope, settings in file.environment.items()},
        front=file.front,
        monitoring=file.monitoring,
        secrets=file.secrets,
        accept=file.accept,
        path=document.path,
    )
