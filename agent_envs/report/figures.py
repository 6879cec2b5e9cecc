"""Numbers as people read them. What isn't known is called so, and never looks like a zero."""

from agent_envs.report.content import Estimate

UNDEFINED = "undefined"
UNKNOWN = "unknown"


def percent(value: float | None) -> str:
    """A share, such as ``62.8 %``."""
    return UNDEFINED if value is None else f"{_zero(100 * value, 1):.1f} %"


def points(value: float | None) -> str:
    """A difference of shares in percentage points, signed."""
    return UNDEFINED if value is None else f"{_zero(100 * value, 1):+.1f}"


def spread(estimate: Estimate, *, signed: bool = False) -> str:
    """An interval without its value, such as ``51.0 to 73.2``."""
    if estimate.low is None or estimate.high is None:
        return UNDEFINED
    sign = "+" if signed else ""
    return f"{_zero(100 * estimate.low, 1):{sign}.1f} to {_zero(100 * estimate.high, 1):{sign}.1f}"


def between(low: float | None, high: float | None) -> str:
    """Two ends of a share, such as ``25.0 to 100.0 %``."""
    if low is None or high is None:
        return UNDEFINED
    return f"{_zero(100 * low, 1):.1f} to {_zero(100 * high, 1):.1f} %"


def dollars(value: float | None) -> str:
    """US dollars, to four significant digits below one."""
    if value is None:
        return UNKNOWN
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.4g}"


def seconds(value: float | None) -> str:
    """Seconds, to three significant digits."""
    if value is None:
        return UNKNOWN
    if value < 0.0995:
        return f"{1000 * value:.3g} ms"
    return f"{value:.3g} s" if value < 999.5 else f"{value:,.0f} s"


def number(value: float | None, digits: int = 1) -> str:
    """A plain number."""
    return UNKNOWN if value is None else f"{_zero(value, digits):,.{digits}f}"


def p_value(value: float | None) -> str:
    """A p value; never a bare zero."""
    if value is None:
        return UNDEFINED
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def _zero(value: float, digits: int) -> float:
    """Round, without a minus before zero."""
    return round(value, digits) + 0.0
