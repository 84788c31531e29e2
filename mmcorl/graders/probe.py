"""Numeric evaluation to many digits, for expressions that have no exact normal form.

Constants are evaluated once; expressions with symbols at several fixed points. Different values prove two expressions
different; the same 40 digits at every point are taken as equality (identity testing in the sense of Schwartz and
Zippel, Journal of the ACM 27, 1980).
"""

from __future__ import annotations

import hashlib
import threading
from functools import lru_cache
from typing import Any

import mpmath

from mmcorl.graders.expressions import Apply, Expr, Number, Symbol, size, symbols

POINTS = 4
MAX_SIZE = 200
_MAX_EXPONENT = 1_000_000  # binary exponent of any intermediate value
_DIGITS = 50
_EQUAL_DIGITS = 40

_context: Any = mpmath.mp.clone()
_context.dps = _DIGITS
_lock = threading.Lock()  # an mpmath context is not safe across threads


class NoValue(Exception):
    """The expression has no finite value of manageable size at some point."""


def agree(a: Expr, b: Expr) -> bool | None:
    """Whether the two have the same value at every point; None where a value cannot be had."""
    names = symbols(a) | symbols(b)
    try:
        left, right = values(a, frozenset(names)), values(b, frozenset(names))
    except NoValue:
        return None
    with _lock:
        return all(_close(x, y, _EQUAL_DIGITS) for x, y in zip(left, right, strict=True))


def agree_to(a: Expr, b: Expr, tolerance: Any) -> bool:
    """Whether two constants differ by no more than an absolute tolerance."""
    try:
        [x], [y] = values(a, frozenset()), values(b, frozenset())
    except NoValue:
        return False
    with _lock:
        return bool(abs(x - y) <= _context.mpf(tolerance.numerator) / tolerance.denominator)


def approximate(expression: Expr) -> float:
    """A real constant as a float, for putting things in order. Raises NoValue."""
    [value] = values(expression, frozenset())
    if abs(value.imag) > 1e-30:
        raise NoValue("not real")
    return float(value.real)


@lru_cache(maxsize=4096)
def values(expression: Expr, names: frozenset[str]) -> tuple[Any, ...]:
    """Complex values of the expression at the points, one value if `names` is empty. Raises NoValue."""
    if size(expression) > MAX_SIZE:
        raise NoValue("too large")
    with _lock:
        return tuple(
            _evaluate(expression, {name: _coordinate(name, point) for name in names})
            for point in range(POINTS if names else 1)
        )


def _coordinate(name: str, point: int) -> Any:
    """A fixed rational between 1/2 and 3, different for every name and point; half of the points have mixed signs."""
    digest = hashlib.sha256(f"{name}/{point}".encode()).digest()
    magnitude = _context.mpf(int.from_bytes(digest[:4]) % 7919 + 1619) / 3181
    return -magnitude if point >= POINTS // 2 and digest[4] % 2 else magnitude


def _evaluate(expression: Expr, at: dict[str, Any]) -> Any:
    match expression:
        case Number(value):
            result = _context.mpc(_context.mpf(value.numerator) / value.denominator)
        case Symbol("pi"):
            result = _context.mpc(_context.pi)
        case Symbol("e"):
            result = _context.mpc(_context.e)
        case Symbol("i"):
            result = _context.mpc(0, 1)
        case Symbol(name):
            if name not in at:
                raise NoValue(f"{name} is not a constant")
            result = _context.mpc(at[name])
        case Apply(head, args):
            result = _apply(head, [_evaluate(a, at) for a in args])
    if not _context.isfinite(result) or _magnitude(result) > _MAX_EXPONENT:
        raise NoValue("not finite, or too large")
    return result


def _apply(head: str, args: list[Any]) -> Any:
    mp = _context
    try:
        match head, args:
            case "+", _:
                return mp.fsum(args)
            case "neg", [x]:
                return -x
            case "*", _:
                return mp.fprod(args)
            case "/", [x, y]:
                return x / y
            case "^", [x, y]:
                return _power(x, y)
            case "root", [x, n]:
                return _root(x, n)
            case "abs", [x]:
                return mp.mpc(abs(x))
            case "log", [x]:
                return mp.log(x)
            case "log", [x, base]:
                return mp.log(x) / mp.log(base)
            case "exp", [x]:
                return _power(mp.mpc(mp.e), x)
            case "!", [x] if abs(x) < 10_000:
                return mp.factorial(x)
            case "binom", [n, k] if abs(n) < 10_000 and abs(k) < 10_000:
                return mp.binomial(n, k)
            case (("sin" | "cos" | "tan" | "cot" | "sec" | "csc" | "sinh" | "cosh" | "tanh"), [x]) if (
                abs(x) < 10**25
            ):
                return getattr(mp, head)(x)
            case (("arcsin" | "arccos" | "arctan"), [x]):
                return getattr(mp, head.removeprefix("arc").join(("a", "")))(x)
            case _:
                raise NoValue(f"{head} has no value here")
    except (ZeroDivisionError, ValueError, OverflowError) as error:
        raise NoValue(str(error)) from error


def _root(x: Any, n: Any) -> Any:
    degree = int(n.real) if n.imag == 0 and n.real == int(n.real) else 0
    if degree % 2 and x.imag == 0 and x.real < 0:  # the real cube root of a negative number
        return -_power(-x, 1 / n)
    return _power(x, 1 / n)


def _power(x: Any, y: Any) -> Any:
    if x == 0:
        if y.real <= 0:
            raise NoValue("0 to the power 0 or less")
        return x
    if _magnitude(y) > 40 or abs(y * _context.log(x)) > _MAX_EXPONENT:
        raise NoValue("a power too large")
    return x**y


def _close(x: Any, y: Any, digits: int) -> bool:
    scale = max(abs(x), abs(y))
    if min(abs(x), abs(y)) == 0:  # sin(pi) is zero but for rounding
        return scale < _context.mpf(10) ** -(digits + 5)
    return abs(x - y) <= scale * _context.mpf(10) ** -digits


def _magnitude(x: Any) -> int:
    """The binary exponent of a complex number, 0 for zero."""
    return max((int(_context.mag(part)) for part in (x.real, x.imag) if part), default=0)
