"""finding_lines: findings of rules as a person reads them; knows no colours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from launcher.cli.words import count
from launcher.flows.lint import Report
from launcher.load.ranges import host_range
from launcher.model.finding import RuleFinding
from launcher.model.rule import Rule

PLACES = 6
"""Places shown of one finding; the rest is counted."""


def finding_lines(findings: Iterable[RuleFinding]) -> Iterator[str]:
    """What, then where, in which launches, why, what to do, and by which rule; each on its line."""
    for f in findings:
        yield f"{f.severity if f.state == 'fires' else f'{f.state} ({f.severity})'}: {f.what}"
        yield from rows(
            ("because" if f.state == "accepted" else "on", f.because),
            ("where", "; ".join(f.places[:PLACES]) + _more(f.places)),
            ("launch", launches(f.launches)),
            ("why", f.why),
            ("do", "" if f.state == "accepted" else f.fix),
            ("source", f.known_from),
            ("rule", f"{f.rule}{_range(f.since, f.until)}"),
        )


def open_lines(findings: Iterable[RuleFinding]) -> Iterator[str]:
    """What could not be told: for each thing that is not known, the rules that would ask for it."""
    waiting: dict[str, dict[str, None]] = {}
    for f in findings:
        if f.state == "open":
            waiting.setdefault(f.because, {})[f.rule] = None
    for because, rules in waiting.items():
        yield f"cannot tell, not knowing {because}: {', '.join(rules)}"


def rule_lines(rule: Rule) -> Iterator[str]:
    """One rule whole."""
    yield f"{rule.id}: {rule.severity}{_range(rule.since, rule.until)}"
    yield from rows(
        ("looks", f"at each {rule.scope}" + (f" of {' and '.join(rule.pools)}" if rule.pools else "")),
        ("what", rule.what),
        ("why", rule.why),
        ("do", rule.fix),
        ("source", rule.known_from),
        ("rule", rule.source),
    )
    for word, samples in (("fires", rule.fires), ("passes", rule.passes)):
        for sample in samples:
            for text in filter(None, (sample.text, sample.prefill, sample.decode)):
                yield from rows((word, f"{sample.engine}: {text}"))


def rule_row(rule: Rule) -> str:
    """One rule in a line."""
    holds = _range(rule.since, rule.until).removeprefix(", ") or "all releases"
    return f"{rule.severity:<8} {rule.id:<32} {holds:<28} {rule.what}"


def summary(report: Report, subject: str) -> str:
    """`prod.yaml: 1 error, 2 warnings; 6 launches, 84 rules`."""
    words = Counter(f.severity if f.state == "fires" else f.state for f in report.findings)
    words["error"] += len(report.problems)
    words["warning"] += len(report.remarks)
    told = [
        *(count(words[word], word) for word in ("error", "warning", "note") if words[word]),
        *(f"{words[word]} {word}" for word in ("accepted", "depends", "open") if words[word]),
    ]
    looked = f"{count(len(report.rules), 'rule')} asked, {count(report.launches, 'command line')}"
    return f"{subject}: {', '.join(told) or 'nothing wrong'}; {looked}"


def warning_line(findings: Sequence[RuleFinding], path: str) -> str:
    """What the head of a plan says of warnings; empty without any."""
    rules = dict.fromkeys(f.rule for f in findings if f.counts)
    if not rules:
        return ""
    return f"{count(len(rules), 'warning')}, see dsv32-launch lint {path}: {', '.join(rules)}"


def rows(*named: tuple[str, str]) -> Iterator[str]:
    """`  where  prod.yaml:12`, one for each text that there is."""
    for word, text in named:
        if text:
            first, *rest = text.splitlines()
            yield f"  {word:<7} {first}"
            yield from (f"          {line}" for line in rest)


def launches(names: Sequence[str]) -> str:
    """`prefill-0 on gpu01–gpu02; decode-0 on gpu05`: hosts of an instance together."""
    together: dict[str, list[str]] = {}
    for name in names:
        instance, _, host = name.partition(" on ")
        together.setdefault(instance, []).append(host)
    words = [f"{i} on {host_range(hosts)}" if any(hosts) else i for i, hosts in together.items()]
    return "; ".join(words[:PLACES]) + _more(words)


def _more(things: Sequence[str]) -> str:
    return f"; and {len(things) - PLACES} more" if len(things) > PLACES else ""


def _range(since: str, until: str) -> str:
    words = [f"since {since}" if since else "", f"until {until}" if until else ""]
    text = " ".join(filter(None, words))
    return f", {text}" if text else ""
