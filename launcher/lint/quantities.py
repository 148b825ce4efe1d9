"""QUANTITIES: every name that a rule may use as `value`, and the function that answers it."""

from __future__ import annotations

from collections.abc import Mapping

from launcher.lint import attention, experts, fitting, names, parallel, process, refused, schedule, transfer
from launcher.lint.reading import Quantity

QUANTITIES: Mapping[str, Quantity] = {
    **transfer.QUANTITIES,
    **parallel.QUANTITIES,
    **experts.QUANTITIES,
    **attention.QUANTITIES,
    **schedule.QUANTITIES,
    **fitting.QUANTITIES,
    **process.QUANTITIES,
    **names.QUANTITIES,
    **refused.QUANTITIES,
}
