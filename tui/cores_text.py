"""On which cores a plan's workers keep, in words."""

from ..engine.plan import Plan
from .format import GROUP


def cores(plan: Plan) -> str:
    """Return on which cores a plan's workers keep: `cores 0-1 at both ends`; empty where the kernel may choose."""
    near, far = _ascending(plan.near_cores), _ascending(plan.far_cores)
    if near and near == far:
        return f"{_listed(near)} at both ends"
    return ", ".join(f"{_listed(each)} at the {end} end" for end, each in (("near", near), ("far", far)) if each)


def _ascending(cores_: tuple[int, ...] | None) -> list[int]:
    return sorted(set(cores_ or ()))


def _listed(ascending: list[int]) -> str:
    is_row = len(ascending) > 1 and ascending[-1] - ascending[0] == len(ascending) - 1
    named = f"{ascending[0]}-{ascending[-1]}" if is_row else ", ".join(map(str, ascending))
    return f"core{'' if len(ascending) == 1 else 's'}{GROUP}{named}"
