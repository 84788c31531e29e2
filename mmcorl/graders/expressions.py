"""Scalar expressions as small trees."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Number:
    value: Fraction


@dataclass(frozen=True)
class Symbol:
    name: str


@dataclass(frozen=True)
class Apply:
    """`head` is one of + * / ^ neg ± ∓ ! or a function's name; log has (argument, base), root has (argument, degree)."""

    head: str
    args: tuple[Expr, ...]


Expr = Number | Symbol | Apply


def symbols(expression: Expr) -> frozenset[str]:
    """Names of the free symbols; pi, e and i are constants."""
    match expression:
        case Symbol(name):
            return frozenset() if name in ("pi", "e", "i") else frozenset((name,))
        case Apply(_, args):
            return frozenset().union(*map(symbols, args))
        case _:
            return frozenset()


def size(expression: Expr) -> int:
    """Number of nodes."""
    return 1 + sum(map(size, expression.args)) if isinstance(expression, Apply) else 1
