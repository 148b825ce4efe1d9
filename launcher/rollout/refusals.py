"""Refusals: why the moves of a plan must not be made, or must wait; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from launcher.model.plan import Action, Change
from launcher.model.problem import Problem
from launcher.rollout.groups import Member
from launcher.rollout.minimum import Waves, too_few
from launcher.rollout.situation import Situation, restarts_peers


def waves_refused(it: Situation, waves: Waves) -> Iterator[Problem]:
    """A Problem for each pool that would fall below its minimum."""
    names = sorted({i.name for wave in waves for i in wave})
    do, why, engine = "say --below-minimum", "", it.wanted.wish.profile.engine
    if restarts_peers(it.wanted) and engine:
        do += f": {', '.join(names)} restart at once then, and requests fail"
        why = f"{engine.name} does not pair again by itself, so all of both pools restart, half by half; "
    do = f"bring another one up first, or {do}"
    if it.options.order != "rolling" and not restarts_peers(it.wanted):
        do = f"say --rolling, {do}"
    pools = it.wanted.wish.inventory.pools
    return too_few(pools, it.instances, waves, it.now.reached, do=do, why=why, drained=it.kept_out)


def one_by_one_refused(it: Situation, waves: Waves, life: Sequence[Change]) -> Iterator[Problem]:
    """A Problem for each pool that would fall below its minimum while its instances go one by one."""
    restarting = {c.instance for c in life if c.action is Action.RESTART}
    if it.options.below_minimum or not restarting:
        return
    rows = [tuple(i for i in row if i.name in restarting) for row in waves]
    do = "bring another one up first, or say --below-minimum: requests fail meanwhile, then"
    pools = it.wanted.wish.inventory.pools
    yield from too_few(pools, it.instances, rows, it.now.reached, do=do, drained=it.kept_out)


def too_few_for_halves(it: Situation, members: Sequence[Member], why: Sequence[str]) -> Iterator[Problem]:
    """A Problem for each pool with too few instances that serve to move one half while the other serves."""
    inventory = it.wanted.wish.inventory
    by_pool = {m.pool: [n.name for n in members if n.pool == m.pool and n.serves] for m in members}
    short = [p for p, up in by_pool.items() if len(up) < 2 * (inventory.pools[p].minimum or 1)]
    for name in short or by_pool:
        pool, up = inventory.pools[name], by_pool[name]
        groups = f"two groups of {pool.minimum or 1}"
        yield Problem(
            what=f"pool {name} has {len(up)} instances that serve, too few for {groups}"
            if short
            else f"the instances of pool {name} share hosts so that they cannot be split into {groups}",
            where=pool.source,
            why=f"those that move and the others cannot serve together: {', '.join(why)}; "
            f"these serve now: {', '.join(up) or 'none'}; instances that share a host move together",
            do="bring another one up first, or say --below-minimum: nothing serves while it starts, then",
        )


def both_at_once(
    it: Situation, why: Sequence[str], needs: Mapping[str, tuple[Change, ...]]
) -> Iterator[Problem]:
    """Hosts that need their engines to stop, beside engines that move by halves: two runs."""
    for host, changes in needs.items():
        yield Problem(
            what=f"{host} needs {steps_of(changes)}, for which its engines stop, "
            "and engines that cannot serve beside those that run",
            where=host,
            why=f"{', '.join(why)}; hosts go instance by instance, such engines half by half: two runs, "
            "whatever --no-reboot and --below-minimum say",
            do="dsv32-launch up first with the stack and settings that run now, and the host's change; then "
            "with these; else dsv32-launch down, then up: nothing serves meanwhile",
        )


def only_router(it: Situation, hosts: Collection[str]) -> Iterator[Problem]:
    """A Problem where one of `hosts` boots, and no other host routes meanwhile."""
    routes = it.wanted.routing_hosts
    if hosts and len(routes) == 1:
        yield Problem(
            what=f"{next(iter(routes))} is the only host that routes",
            where=it.wanted.wish.inventory.pools["router"].source,
            why="users reach nothing while it boots",
            do="say --below-minimum, or give pool router a second host and the inventory `front.address`",
        )


def half_moved(it: Situation) -> Iterator[Problem]:
    """A Problem where a rollout has ended on its way: what it had drained may not fit what serves."""
    if names := sorted(it.now.left_drained):
        yield Problem(
            what=f"{', '.join(names)} was drained by a rollout that has not come to its end",
            where=names[0],
            why="it may not be able to serve with what gets requests now",
            do=f"dsv32-launch up {it.wanted.wish.inventory.path}, or dsv32-launch rollback; then restart",
        )


def waits(it: Situation, host: str, needs: Sequence[Change]) -> Problem:
    """What a host needs that was left as it is, because the run may not stop its engines."""
    boots = [f"{c.subject} shows {c.before}, wanted {c.after}" for c in needs if c.action is Action.REBOOT]
    return Problem(
        what=f"{host} is left as it is: its engines would have to stop",
        where=host,
        why="; ".join([f"it needs {steps_of(needs)}", *boots]),
        do=f"dsv32-launch up {it.wanted.wish.inventory.path}, without --no-reboot",
    )


def steps_of(changes: Collection[Change]) -> str:
    """`nvidia-driver/packages, nvidia-driver/version`."""
    return ", ".join(dict.fromkeys(c.step for c in changes))
