"""The commands for what broke: diagnose, bundle."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.options import DataDir, InventoryOption, JsonLines, SinceStart, UnitTarget
from launcher.model.problem import Exit, InputError, Problem

CAUSES = 20
"""Shown to people; the verdict counts the others."""
RELEASE = re.compile(r"\d+\.\d+(\.\d+)?")


def diagnose(
    target: UnitTarget = "",
    inventory: InventoryOption = None,
    since: SinceStart = "",
    saved: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Read logs from a file or folder (HOST/UNIT.log), and ask no host.",
            show_default=False,
        ),
    ] = None,
    version: Annotated[
        str,
        typer.Option("--engine-version", metavar="X.Y.Z", help="vLLM's release, if the logs do not say."),
    ] = "",
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Say what broke first, on which host, how sure that is, and what to do. Exit 1 if anything did.

    Reads the logs of all units and kernels, tells consequences from causes, and looks on the hosts whether it
    is so. Changes nothing.
    """
    from launcher.cli.diagnosetext import cause_document, cause_lines, hang_problem, verdict
    from launcher.cli.output import choose
    from launcher.flows import diagnose as flow
    from launcher.flows.logs import moment

    if version and not RELEASE.fullmatch(version):
        raise InputError(Problem(f"`{version}` is no release", "--engine-version", do="write it like 0.14.1"))
    if saved and (target or since):
        what = f"{'a target' if target else '--since'} means nothing to --from: all that is saved is read"
        do = "leave it out, or name the file of one unit with --from"
        raise InputError(Problem(what, where=target or since, do=do))
    view = choose(json_lines=json_lines)
    if saved:
        report = flow.of_files(saved, version=version, data_dir=data_dir)
    else:
        from launcher.cli.context import connected, deployment_of, read_wanted

        since_s = moment(since, time.time()) if since else 0.0
        wanted = read_wanted(inventory, data_dir)
        with connected(wanted) as fleet:
            report = flow.of_hosts(
                fleet,
                wanted,
                deployment_of(wanted),
                target,
                since_s=since_s,
                version=version,
                data_dir=data_dir,
            )
    causes = report.diagnosis.causes
    for n, cause in enumerate(causes if json_lines else causes[:CAUSES]):
        runbook = report.runbook(cause)
        text = "\n".join(cause_lines(cause, runbook="" if n else runbook))
        view.result("cause", cause_document(cause, runbook=runbook), text)
    view.problems((*report.problems, *(hang_problem(h) for h in report.hangs)))
    view.result("diagnosis", {"found": report.found, "lines": report.lines}, verdict(report))
    raise typer.Exit(Exit.HOSTS_FAILED if report.found else Exit.DONE)


def bundle(
    target: UnitTarget = "",
    inventory: InventoryOption = None,
    since: SinceStart = "",
    to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Default: CLUSTER-TIME.tar.gz here.", show_default=False),
    ] = None,
    hide_addresses: Annotated[
        bool, typer.Option("--hide-addresses", help="Replace IPv4 addresses by numbers.")
    ] = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Put logs, units, facts of hosts, runs and the diagnosis into one archive, without secrets."""
    from launcher.cli.context import connected, deployment_of, read_wanted
    from launcher.cli.diagnosetext import report_text
    from launcher.cli.output import choose
    from launcher.flows import bundle as flow
    from launcher.flows import diagnose as diagnosis
    from launcher.flows.logs import moment
    from launcher.load.data import Data, roots_of
    from launcher.load.signatures import read_log_knowledge
    from launcher.record.redact import Redaction

    view = choose(json_lines=json_lines)
    since_s = moment(since, time.time()) if since else 0.0
    wanted = read_wanted(inventory, data_dir)
    deployment = deployment_of(wanted)
    forms = read_log_knowledge(Data(roots_of(data_dir))).forms
    redaction = Redaction(wanted.wish.secrets.values(), forms.secrets, hide_addresses=hide_addresses)
    with connected(wanted) as fleet:
        report = diagnosis.of_hosts(
            fleet, wanted, deployment, target, since_s=since_s, version="", data_dir=data_dir
        )
        files, silent = flow.collect(fleet, wanted, deployment, target, since_s=since_s)
    files = {"diagnosis.txt": report_text(report), **files, **flow.last_runs(os.environ, deployment.cluster)}
    path = to or Path(f"{deployment.cluster}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.tar.gz")
    made = flow.write(path, files, redaction, notes=[f"{p.where}: {p.what}" for p in silent])
    view.problems(silent)
    for line in made.left_out:
        view.say(f"left out: {line}")
    told = f"{path}: {made.files} files, {made.size_bytes / 2**20:.1f} MiB, {redaction.count} places redacted"
    view.result("bundle", made, f"{told}; read CONTENTS.txt in it before you send it")
    raise typer.Exit(Exit.HOSTS_FAILED if silent else Exit.DONE)
