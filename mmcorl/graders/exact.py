"""Exact arithmetic: sums of rational multiples of square roots, constants and symbols, in one normal form.

Two expressions with a normal form are equal exactly when their forms are (square roots of different square-free
integers, and products of different symbols, are linearly independent), so most comparisons end here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import reduce

from mmcorl.graders.expressions import Apply, Expr, Number, Symbol
from mmcorl.graders.latex import Unreadable

MAX_TERMS = 100
MAX_BITS = 13_000  # just under the 4,300 digits that python turns into text
MAX_FACTORIAL = 1_200

Powers = tuple[tuple[str, Fraction], ...]
Monomial = tuple[int, Powers]  # (square-free radicand, sorted powers of symbols)
Form = Mapping[Monomial, Fraction]

_ONE: Monomial = (1, ())
_PRIMES = [n for n in range(2, 1000) if all(n % d for d in range(2, math.isqrt(n) + 1))]


class NoForm(Unreadable):
    """The expression has no normal form here, or one too large; it may still be compared numerically."""


def normal(expression: Expr) -> Form:
    """The normal form. Raises NoForm, also for a division by zero."""
    match expression:
        case Number(value):
            return _bounded(_constant(value))
        case Symbol(name):
            return {(1, ((name, Fraction(1)),)): Fraction(1)}
        case Apply("+", args):
            return _bounded(_add(*map(normal, args)))
        case Apply("neg", (inner,)):
            return {m: -c for m, c in normal(inner).items()}
        case Apply("*", args):
            return reduce(multiply, map(normal, args))
        case Apply("/", (a, b)):
            return multiply(normal(a), inverse(normal(b)))
        case Apply("^", (base, exponent)):
            return _power(normal(base), normal(exponent))
        case Apply("root", (inner, degree)):
            return _power(normal(inner), inverse(normal(degree)))
        case Apply("!", (inner,)):
            return _constant(math.factorial(_natural(inner, MAX_FACTORIAL)))
        case Apply("binom", (n, k)):
            return _constant(math.comb(_natural(n, MAX_FACTORIAL), _natural(k, MAX_FACTORIAL)))
        case Apply("log", (inner, base)):
            return _constant(_logarithm(normal(inner), normal(base)))
        case Apply("abs", (inner,)):
            return _constant(abs(rational(normal(inner))))
        case Apply(("gcd" | "lcm" | "min" | "max") as head, args):
            return _constant(_selected(head, [rational(normal(a)) for a in args]))
        case _:
            raise NoForm("no exact form")


def rational(form: Form) -> Fraction:
    """The value of a form that is one rational number; raises NoForm otherwise."""
    if not form:
        return Fraction(0)
    if form.keys() == {_ONE}:
        return form[_ONE]
    raise NoForm("not a rational number")


def multiply(a: Form, b: Form) -> Form:
    if len(a) * len(b) > MAX_TERMS * 10:
        raise NoForm("too many terms")
    product: dict[Monomial, Fraction] = {}
    for (root_a, powers_a), x in a.items():
        for (root_b, powers_b), y in b.items():
            common = math.gcd(root_a, root_b)
            coefficient = x * y * common
            powers = dict(powers_a)
            for name, exponent in powers_b:
                powers[name] = powers.get(name, Fraction(0)) + exponent
            if "i" in powers:
                turns = int(powers.pop("i")) % 4
                coefficient = -coefficient if turns in (2, 3) else coefficient
                if turns % 2:
                    powers["i"] = Fraction(1)
            kept = tuple(sorted((n, e) for n, e in powers.items() if e))
            key = (root_a // common * (root_b // common), kept)
            product[key] = product.get(key, Fraction(0)) + coefficient
    return _bounded({m: c for m, c in product.items() if c})


def inverse(form: Form) -> Form:
    """One divided by the form: always for one term, else only for sums of square roots of numbers."""
    if not form:
        raise NoForm("division by zero")
    if len(form) == 1:
        [((radicand, powers), coefficient)] = form.items()
        turned = tuple((name, -exponent) for name, exponent in powers)
        flipped = multiply({(1, turned): 1 / coefficient}, {(radicand, ()): Fraction(1, radicand)})
        return flipped
    if any(set(dict(powers)) - {"i"} for _, powers in form):
        raise NoForm("a sum of symbols in the denominator")
    # Multiply by the conjugate, which removes one root at a time; every step is exact.
    numerator: Form = _constant(Fraction(1))
    while len(form) > 1:
        mark = _irrational_part(form)
        conjugate = {m: (-c if _has(m, mark) else c) for m, c in form.items()}
        numerator, form = multiply(numerator, conjugate), multiply(form, conjugate)
        if len(numerator) > 16:
            raise NoForm("too many roots in the denominator")
    return multiply(numerator, inverse(form))


def show(form: Form) -> str:
    """The form as text that reads back to the same form: `3/4`, `2*sqrt(3)`, `x^2+2*x+1`."""
    if not form:
        return "0"
    terms = [_show_term(monomial, form[monomial]) for monomial in sorted(form, key=_order)]
    return "".join(t if t.startswith("-") or i == 0 else f"+{t}" for i, t in enumerate(terms))


def proportional(a: Form, b: Form) -> Fraction | None:
    """The rational number r with a = r b, or None."""
    if a.keys() != b.keys() or not a:
        return None
    ratios = {a[m] / b[m] for m in a}
    return ratios.pop() if len(ratios) == 1 else None


def _order(monomial: Monomial) -> tuple[Fraction, Powers, int]:
    radicand, powers = monomial
    return -sum((e for n, e in powers if n not in ("pi", "e", "i")), Fraction(0)), powers, radicand


def _show_term(monomial: Monomial, coefficient: Fraction) -> str:
    radicand, powers = monomial
    factors = [f"sqrt({radicand})"] if radicand != 1 else []
    for name, exponent in powers:
        symbol = show_symbol(name)
        factors.append(
            symbol
            if exponent == 1
            else f"{symbol}^({exponent})"
            if exponent < 0 or exponent.denominator > 1
            else f"{symbol}^{exponent}"
        )
    size = abs(coefficient)
    if not factors or size != 1:
        factors.insert(0, str(size) if size.denominator == 1 or not factors else f"({size})")
    return ("-" if coefficient < 0 else "") + "*".join(factors)


def show_symbol(name: str) -> str:
    """A symbol as text that reads back to it."""
    base, _, index = name.partition("_")
    spelled = base if len(base.rstrip("'")) == 1 or base in ("pi", "...", "∞") else f"\\{base}"
    return f"{spelled}_{{{index.rstrip(chr(39))}}}" + "'" * index.count("'") if index else spelled


def _constant(value: Fraction | int) -> Form:
    return {_ONE: Fraction(value)} if value else {}


def _add(*forms: Form) -> dict[Monomial, Fraction]:
    total: dict[Monomial, Fraction] = {}
    for form in forms:
        for monomial, coefficient in form.items():
            total[monomial] = total.get(monomial, Fraction(0)) + coefficient
    return {m: c for m, c in total.items() if c}


def _bounded(form: Form) -> Form:
    if len(form) > MAX_TERMS:
        raise NoForm("too many terms")
    for coefficient in form.values():
        if max(coefficient.numerator.bit_length(), coefficient.denominator.bit_length()) > MAX_BITS:
            raise NoForm("a number too long")
    return form


def _natural(expression: Expr, limit: int) -> int:
    value = rational(normal(expression))
    if value.denominator != 1 or not 0 <= value <= limit:
        raise NoForm("not a natural number, or too large")
    return int(value)


def _selected(head: str, values: list[Fraction]) -> Fraction | int:
    if head in ("min", "max"):
        return min(values) if head == "min" else max(values)
    if any(v.denominator != 1 for v in values):
        raise NoForm("gcd and lcm are for integers")
    return (math.gcd if head == "gcd" else math.lcm)(*map(int, values))


def _power(base: Form, exponent_form: Form) -> Form:
    exponent = rational(exponent_form)
    if exponent.denominator == 1:
        return _integer_power(base, int(exponent))
    if not base and exponent > 0:
        return {}
    if len(base) != 1:
        raise NoForm("root of a sum")
    [((radicand, powers), coefficient)] = base.items()
    if powers:
        name, inner = powers[0]
        bare = len(powers) == 1 and radicand == 1 and coefficient == 1 and name != "i"
        if bare and (inner == 1 or name in ("e", "pi")):
            return {(1, ((name, inner * exponent),)): Fraction(1)}
        raise NoForm("root of a product")
    if radicand != 1:
        raise NoForm("root of a root")
    exact = _rational_power(coefficient, exponent)
    if exact is not None:
        return _constant(exact)
    if exponent.denominator == 2:
        return multiply(_square_root(coefficient), _integer_power(base, int(exponent - Fraction(1, 2))))
    raise NoForm("no exact root")


def _integer_power(base: Form, exponent: int) -> Form:
    if exponent < 0:
        return _integer_power(inverse(base), -exponent)
    bits = max((max(c.numerator.bit_length(), c.denominator.bit_length()) for c in base.values()), default=0)
    many = exponent > 1 and ((len(base) > 1 and exponent > 40) or exponent > 10**6)
    if many or (bits > 1 and (bits - 1) * exponent > MAX_BITS) or (not base and not exponent):
        raise NoForm("a power too large, or 0^0")
    result: Form = _constant(1)
    while exponent:
        if exponent & 1:
            result = multiply(result, base)
        exponent >>= 1
        base = multiply(base, base) if exponent else base
    return result


def _rational_power(value: Fraction, exponent: Fraction) -> Fraction | None:
    degree = exponent.denominator
    if value < 0 or degree > 64:
        return None
    top, bottom = _exact_root(value.numerator, degree), _exact_root(value.denominator, degree)
    if top is None or bottom is None or (top == 0 and exponent < 0):
        return None
    return rational(_integer_power(_constant(Fraction(top, bottom)), exponent.numerator))


def _exact_root(value: int, degree: int) -> int | None:
    if value.bit_length() > 1000:
        return None
    low, high = 0, 1 << (value.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= value else (low, middle - 1)
    return low if low**degree == value else None


def _square_root(value: Fraction) -> Form:
    """√(p/q) = √(p q) / q with the squares taken out; √(-1) is i."""
    outside, inside = _take_squares(abs(value.numerator) * value.denominator)
    powers: Powers = (("i", Fraction(1)),) if value < 0 else ()
    return {(inside, powers): Fraction(outside, value.denominator)}


def _take_squares(value: int) -> tuple[int, int]:
    if value.bit_length() > 1000:
        raise NoForm("a radicand too long")
    outside, inside, rest = 1, 1, value
    for prime in _PRIMES:
        while rest % (prime * prime) == 0:
            rest //= prime * prime
            outside *= prime
        if rest % prime == 0:
            rest //= prime
            inside *= prime
        if prime * prime > rest:
            break
    whole = math.isqrt(rest)
    if whole * whole == rest:
        return outside * whole, inside
    if rest > _PRIMES[-1] ** 3:
        raise NoForm("a radicand too long to factor")
    return outside, inside * rest


def _logarithm(inner: Form, base: Form) -> Fraction | int:
    if base.keys() == {(1, (("e", Fraction(1)),))} and len(inner) == 1:
        [((radicand, powers), coefficient)] = inner.items()
        if coefficient == radicand == 1 and (not powers or [n for n, _ in powers] == ["e"]):
            return powers[0][1] if powers else 0
        raise NoForm("no exact logarithm")
    value, radix = rational(inner), rational(base)
    if value <= 0 or radix <= 1:
        raise NoForm("no exact logarithm")
    sign, value = (1, value) if value >= 1 else (-1, 1 / value)
    exponent = round(math.log(value) / math.log(radix)) if value.numerator.bit_length() < 1000 else 0
    if exponent <= 1000 and radix**exponent == value:
        return sign * exponent
    raise NoForm("no exact logarithm")


def _irrational_part(form: Form) -> int:
    """A prime under some root of the form, or -1 for i; a root of unfactored size stands for itself."""
    if any(powers for _, powers in form):
        return -1
    radicand = max(r for r, _ in form)
    return next((p for p in _PRIMES if radicand % p == 0), radicand)


def _has(monomial: Monomial, mark: int) -> bool:
    radicand, powers = monomial
    return bool(powers) if mark == -1 else radicand % mark == 0
