"""Where the time of ranks went, as text: families, scopes, what took most, and another capture beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from launcher.cli.words import columns
from launcher.model.trace import RankTime

LONGEST = 60


def text(times: Sequence[RankTime]) -> str:
    """A row for each process, then what took most of each."""
    scopes = list(dict.fromkeys(name for t in times for name in t.scopes_ms))
    families = list(dict.fromkeys(name for t in times for name in sorted(t.families_ms)))
    heads = ("", "of", "ms", "idle", *families, *scopes)
    rows = [
        (
            t.label,
            t.of,
            f"{t.window_ms:.1f}",
            f"{t.share(t.idle_ms):.1%}",
            *(f"{t.share(t.families_ms.get(n, 0)):.1%}" for n in families),
            *(f"{t.share(t.scopes_ms.get(n, 0)):.1%}" for n in scopes),
        )
        for t in times
    ]
    told = "shares of the window; work by self time, nested events once; scopes on the CPU, with all in them"
    return "\n\n".join((columns([heads, *rows], left=("", "of")), told, *("\n".join(_top(t)) for t in times)))


def _top(time: RankTime) -> Iterator[str]:
    yield f"{time.label}, self time"
    for name, ms, count in time.top:
        yield f"  {ms:10.2f} ms  {count:7d}  {name[:LONGEST]}"


def difference(before: Sequence[RankTime], after: Sequence[RankTime]) -> str:
    """Means over the processes of both, as shares, and by how many points they differ."""
    names = list(dict.fromkeys(n for t in (*before, *after) for n in (*sorted(t.families_ms), *t.scopes_ms)))
    rows = [("idle", *_pair([t.share(t.idle_ms) for t in before], [t.share(t.idle_ms) for t in after]))]
    rows += [(name, *_pair(_shares(before, name), _shares(after, name))) for name in names]
    return columns([("", "before", "after", "points"), *rows], left=("",))


def _shares(times: Sequence[RankTime], name: str) -> list[float]:
    return [t.share(t.families_ms.get(name, t.scopes_ms.get(name, 0.0))) for t in times]


def _pair(before: Sequence[float], after: Sequence[float]) -> tuple[str, str, str]:
    old, new = sum(before) / len(before), sum(after) / len(after)
    return f"{old:.1%}", f"{new:.1%}", f"{(new - old) * 100:+.1f}"
