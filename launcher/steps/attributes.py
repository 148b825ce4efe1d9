"""Mode, owner and group of a path: what was found, what is wanted."""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

from annotated_types import Predicate


def is_mode(text: str) -> bool:
    """Four octal digits: `0644`."""
    return re.fullmatch("[0-7]{4}", text) is not None


Mode: TypeAlias = Annotated[str, Predicate(is_mode)]
