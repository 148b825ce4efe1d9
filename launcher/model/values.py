"""Json: what a JSON text can hold; imports nothing of ours."""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any] | None
