"""Words for `dsv32-launch sandbox`: real hosts on this machine, to try, test and break things on."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.words import count as counted
from launcher.model.problem import LauncherError, Problem
from launcher.sandbox import Sandbox, SandboxHost, base
from launcher.sandbox.boot import Disks

app = typer.Typer(
    help="Real hosts on this machine, with systemd, sshd and a network; and ways to break them. Needs root.",
    no_args_is_help=True,
)
NEW = Disks()
DEVICES = Path("/dev")
PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}

HostName = Annotated[str, typer.Argument(metavar="HOST", help="Name, number or address of a host.")]
HostNames = Annotated[str, typer.Argument(metavar="HOST", help="A host, several with commas, or `all`.")]
Words = Annotated[list[str] | None, typer.Argument(metavar="[CMD]...", help="Command and its arguments.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def choose(
    ctx: typer.Context,
    directory: Annotated[
        Path, typer.Option("--dir", envvar="DSV32_SANDBOX_DIR", help="Work directory: one for each sandbox.")
    ] = Path("/var/tmp/dsv32-sandbox"),
    name: Annotated[
        str,
        typer.Option(
            envvar="DSV32_SANDBOX_NAME",
            help="Small letters, part of network device names; `ds` if not given.",
        ),
    ] = "",
    subnet: Annotated[
        str,
        typer.Option(
            envvar="DSV32_SANDBOX_SUBNET",
            help="A private /24; the first free of 10.77 to 10.92 if not given.",
        ),
    ] = "",
    base_directory: Annotated[
        str,
        typer.Option("--base", envvar="DSV32_SANDBOX_BASE", help="A base tree shared with other sandboxes."),
    ] = "",
    mirror: Annotated[
        str,
        typer.Option(
            envvar="DSV32_SANDBOX_MIRROR", help="Debian mirror for the base tree; apt's if not given."
        ),
    ] = "",
) -> None:
    """Choose the sandbox that the verb is about; nothing is touched."""
    ctx.obj = Sandbox(directory, name=name, subnet=subnet, base=base_directory, mirror=mirror, say=_say)


@app.command()
def up(
    ctx: typer.Context,
    count: Annotated[int, typer.Argument(metavar="N", help="How many hosts, 1 to 64.")],
    root_size: Annotated[str, typer.Option(help="New hosts' root: tmpfs size, or `disk`.")] = NEW.root,
    nvme_size: Annotated[str, typer.Option(help="New hosts' /nvme: tmpfs size, or `disk`.")] = NEW.nvme,
    gpu: Annotated[
        bool, typer.Option("--gpu", help="Hosts see this machine's GPUs, driver and programs.")
    ] = False,
    within_s: Annotated[float, typer.Option(help="Seconds for a host to boot.")] = 300,
    as_json: AsJson = False,
) -> None:
    """Have exactly N hosts up, without faults; does nothing where that is so."""
    began, sandbox = time.monotonic(), _sandbox(ctx)
    sandbox.up(count, disks=Disks(root_size, nvme_size), devices=DEVICES if gpu else None, within_s=within_s)
    _say(f"{counted(count, 'host')} up in {time.monotonic() - began:.1f} s")
    hosts = [{"name": host.name, "address": host.address} for host in sandbox.hosts()]
    if as_json:
        place = sandbox.place
        paths = {"ssh_config": place.ssh_config, "known_hosts": place.known_hosts, "key": place.key}
        document = {"name": place.name, "subnet": str(place.subnet), "gpfs": str(place.gpfs)}
        _print_json({**document, **{word: str(path) for word, path in paths.items()}, "hosts": hosts})
    else:
        for host in hosts:
            typer.echo(f"{host['name']}  {host['address']}")


@app.command()
def down(
    ctx: typer.Context,
    purge: Annotated[bool, typer.Option("--purge", help="Remove the base tree and /gpfs too.")] = False,
) -> None:
    """Remove all hosts and every trace of them; the base tree and /gpfs stay."""
    _sandbox(ctx).down(purge=purge)


@app.command()
def status(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Print each host's address, power, link and delay."""
    rows = [host.status() for host in _sandbox(ctx).hosts()]
    if as_json:
        _print_json([asdict(row) for row in rows])
        return
    for row in rows:
        delay = f"  delay {row.delay}" if row.delay else ""
        typer.echo(f"{row.name}  {row.address:<14} {row.power:<6}  link {row.link:<3}{delay}")


@app.command(context_settings=PASS_ON)
def ssh(ctx: typer.Context, host: HostName, command: Words = None) -> None:
    """Log in to a host as root, or run a command there, with the ssh program."""
    sandbox = _sandbox(ctx)
    os.execvp("ssh", ["ssh", "-F", str(sandbox.ssh_config), sandbox.host(host).name, *(command or [])])


@app.command()
def ssh_config(
    ctx: typer.Context,
    text: Annotated[bool, typer.Option("--text", help="Print what is in the file.")] = False,
) -> None:
    """Print the path of the ssh_config file: `ssh -F $(dsv32-launch sandbox ssh-config) h01`."""
    path = _sandbox(ctx).ssh_config
    if not path.exists():
        raise LauncherError(Problem("no hosts are up", where=str(path), do="dsv32-launch sandbox up 3"))
    typer.echo(path.read_text() if text else path, nl=not text)


@app.command("exec", context_settings=PASS_ON)
def exec_(ctx: typer.Context, host: HostName, command: Words = None) -> None:
    """Run a command in a host as root without SSH; a shell if none is given."""
    words = _sandbox(ctx).host(host).enter(command or ["/bin/bash"])
    os.execvp(words[0], words)


@app.command()
def cut(
    ctx: typer.Context,
    hosts: HostNames,
    silent: Annotated[bool, typer.Option("--silent", help="Packets vanish: connects time out.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take a host's network cable out: connects end in `no route to host`."""
    _on_each(ctx, hosts, lambda host: host.cut(silent=silent), as_json=as_json)


@app.command()
def heal(ctx: typer.Context, hosts: HostNames, as_json: AsJson = False) -> None:
    """Put a host's network cable back in."""
    _on_each(ctx, hosts, SandboxHost.heal, as_json=as_json)


@app.command()
def kill(ctx: typer.Context, hosts: HostNames, as_json: AsJson = False) -> None:
    """Take a host's power; its disks stay."""
    _on_each(ctx, hosts, SandboxHost.kill, as_json=as_json)


@app.command()
def start(ctx: typer.Context, hosts: HostNames, as_json: AsJson = False) -> None:
    """Boot a host that is down and wait until it is up."""
    _on_each(ctx, hosts, SandboxHost.start, as_json=as_json)


@app.command()
def stop(ctx: typer.Context, hosts: HostNames, as_json: AsJson = False) -> None:
    """Shut a host down in order."""
    _on_each(ctx, hosts, SandboxHost.stop, as_json=as_json)


@app.command()
def freeze(ctx: typer.Context, hosts: HostNames, as_json: AsJson = False) -> None:
    """Stop every process of a host: TCP connects, nothing answers."""
    _on_each(ctx, hosts, SandboxHost.freeze, as_json=as_json)


@app.command()
def thaw(ctx: typer.Context, hosts: HostNames, as_json: AsJson = False) -> None:
    """Let a frozen host's processes go on."""
    _on_each(ctx, hosts, lambda host: host.freeze(False), as_json=as_json)


@app.command()
def fill(
    ctx: typer.Context,
    hosts: HostNames,
    path: Annotated[str, typer.Argument(help="`/nvme` or `/`; it must have a size of its own.")] = "/nvme",
    as_json: AsJson = False,
) -> None:
    """Fill a host's file system until nothing more fits."""
    _on_each(ctx, hosts, lambda host: host.fill(path), as_json=as_json)


@app.command()
def free(ctx: typer.Context, hosts: HostNames, as_json: AsJson = False) -> None:
    """Take away what `fill` wrote."""
    _on_each(ctx, hosts, SandboxHost.free, as_json=as_json)


@app.command()
def delay(
    ctx: typer.Context,
    hosts: HostNames,
    words: Annotated[
        list[str], typer.Argument(help="`20ms 5ms loss 1% rate 50mbit` in any mix (each way), or `off`.")
    ],
    as_json: AsJson = False,
) -> None:
    """Make a host's network slow or lossy, in each direction."""
    if words == ["off"]:
        _on_each(ctx, hosts, SandboxHost.undelay, as_json=as_json)
    else:
        _on_each(ctx, hosts, lambda host: host.delay(*words), as_json=as_json)


@app.command("base")
def base_(ctx: typer.Context) -> None:
    """Build the base tree that all hosts stand on, if it is not there."""
    _sandbox(ctx).build_base()


@app.command()
def stock(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Fill the sandbox's shared file system: the CPU engine stack and the tiny model. Kept where whole."""
    from launcher.cli.output import choose
    from launcher.flows import stock as flow
    from launcher.load.data import Data, roots_of

    view = choose(json_lines=as_json)
    sandbox = _sandbox(ctx)
    sandbox.build_base()
    done = flow.stock(sandbox.gpfs, sandbox.place.tree, view.event, data=Data(roots_of(None)))
    size_gib = done.stack.size_bytes / 2**30
    text = f"{done.stack.folder}: {done.stack.wheels} wheels, {size_gib:.1f} GiB; {done.model}"
    view.result("stock", done, text)


@app.command()
def deps() -> None:
    """Install the Debian packages that a sandbox needs on this machine."""
    if not base.install_lacking(_say):
        _say("nothing is missing")


def _sandbox(ctx: typer.Context) -> Sandbox:
    found = ctx.obj
    assert isinstance(found, Sandbox)
    return found


def _on_each(ctx: typer.Context, hosts: str, do: Callable[[SandboxHost], object], *, as_json: bool) -> None:
    sandbox = _sandbox(ctx)
    base.require_root()
    with sandbox.locked():
        chosen = sandbox.select(hosts)
        for host in chosen:
            do(host)
        if as_json:
            _print_json([asdict(host.status()) for host in chosen])


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _print_json(document: object) -> None:
    typer.echo(json.dumps(document, indent=2))
