"""The parser that grows expressions from tokens.

Only what has one plain meaning is parsed; anything else raises Unreadable and is left to the symbolic workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from mmcorl.graders.expressions import Apply, Expr, Number, Symbol
from mmcorl.graders.latex import Token, Unreadable
from mmcorl.graders.words import words

MAX_DEPTH = 60
MAX_EXPONENT_DIGITS = 4  # of a decimal exponent such as 1e400
MAX_DIGITS = 4000  # python converts no longer integers to text

_FUNCTIONS = words(
    """sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp abs gcd lcm min max"""
)
ANGLE_FUNCTIONS = words("sin cos tan cot sec csc")
_SYMBOLS = words(
    """alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau
    upsilon phi chi psi omega Gamma Delta Theta Lambda Sigma Phi Psi Omega"""
)
_CLOSERS = {"(": ")", "[": "]", "{": "}", r"\{": r"\}"}


def number(text: str) -> Fraction:
    """The exact value of a decimal numeral, scientific notation included."""
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > MAX_DIGITS or len(exponent.lstrip("+-")) > MAX_EXPONENT_DIGITS:
        raise Unreadable("a numeral too long to compute with")
    return Fraction(text if mantissa[0] != "." else f"0{text}")


def parse(tokens: Sequence[Token]) -> Expr:
    """The expression that all of the tokens make up. Raises Unreadable."""
    if not tokens:
        raise Unreadable("nothing to read")
    parser = _Parser(tokens)
    expression = parser.sum()
    if parser.here is not None:
        raise Unreadable(f"unexpected {parser.here.text!r}")
    return expression


class _Parser:
    """Recursive descent; `position` moves over the tokens and the depth is bounded."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.position = 0
        self.depth = 0

    @property
    def here(self) -> Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def ahead(self, offset: int) -> Token | None:
        index = self.position + offset
        return self.tokens[index] if index < len(self.tokens) else None

    def at(self, *ops: str) -> bool:
        token = self.here
        return token is not None and token.kind == "op" and token.text in ops

    def take(self, *ops: str) -> str | None:
        if not self.at(*ops):
            return None
        self.position += 1
        return self.tokens[self.position - 1].text

    def next(self) -> Token:
        token = self.here
        if token is None:
            raise Unreadable("ends too early")
        self.position += 1
        return token

    def nested(self, rule: Callable[[], Expr]) -> Expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("nested too deep")
        result = rule()
        self.depth -= 1
        return result

    def sum(self) -> Expr:
        terms = [self.nested(self.signed_product)]
        while op := self.take("+", "-", "±", "∓"):
            term = self.nested(self.signed_product)
            terms.append(term if op == "+" else Apply({"-": "neg"}.get(op, op), (term,)))
        return terms[0] if len(terms) == 1 else Apply("+", tuple(terms))

    def signed_product(self) -> Expr:
        if op := self.take("-", "+", "±", "∓"):
            inner = self.nested(self.signed_product)
            return inner if op == "+" else Apply({"-": "neg"}.get(op, op), (inner,))
        return self.product()

    def product(self) -> Expr:
        factors, divisors = [self.power()], []
        while True:
            if self.take("*"):
                factors.append(self.nested(self.signed_power))
            elif self.take("/"):
                divisors.append(self.nested(self.signed_power))
            elif self.starts_factor():
                factors.append(self.power())
            else:
                return Apply("/", (_product(factors), _product(divisors))) if divisors else _product(factors)

    def signed_power(self) -> Expr:
        if self.take("-"):
            return Apply("neg", (self.nested(self.signed_power),))
        self.take("+")
        return self.power()

    def starts_factor(self) -> bool:
        """Whether a factor follows without a sign of multiplication; two numerals side by side are no product."""
        token = self.here
        if token is None or token.kind == "word":
            return False
        if token.kind == "number":
            return self.tokens[self.position - 1].kind != "number"
        return token.kind in ("name", "command") or token.text in ("(", "{", "[")

    def power(self) -> Expr:
        base = self.atom()
        start = self.position
        while self.position - start <= 3:
            if self.take("!"):
                base = Apply("!", (base,))
            elif self.take("°"):
                base = Apply("*", (base, Apply("/", (Symbol("pi"), Number(Fraction(180))))))
            elif self.take("%"):
                base = Apply("/", (base, Number(Fraction(100))))
            elif self.take("^"):
                return self.postfix_factorial(Apply("^", (base, self.exponent())))
            else:
                return base
        raise Unreadable("too many signs after one another")

    def postfix_factorial(self, base: Expr) -> Expr:
        return Apply("!", (base,)) if self.take("!") else base

    def exponent(self) -> Expr:
        inner = self.argument()
        return Apply("^", (inner, self.nested(self.exponent))) if self.take("^") else inner

    def argument(self) -> Expr:
        """What a command takes: a group in braces, one digit of a numeral (`\\frac12`), or one atom."""
        token = self.here
        if token is not None and token.kind == "op" and token.text == "-":
            self.position += 1
            return Apply("neg", (self.nested(self.argument),))
        if token is not None and token.kind == "number":  # in x^2 \frac12 the 2 is no part of a mixed number
            self.position += 1
            return Number(number(token.text))
        return self.nested(self.power if self.at("(") else self.atom)

    def braced(self) -> Expr:
        """An argument of \\frac and the like, where an unbraced numeral gives one digit only."""
        token = self.here
        if token is not None and token.kind == "number" and len(token.text) > 1 and token.text.isdigit():
            rest = Token("number", token.text[1:], False)
            self.tokens = [*self.tokens[: self.position], rest, *self.tokens[self.position + 1 :]]
            return Number(Fraction(token.text[0]))
        return self.nested(self.atom)

    def group(self, closer: str) -> Expr:
        inner = self.nested(self.sum)
        if not self.take(closer):
            raise Unreadable(f"{closer!r} is missing")
        return inner

    def atom(self) -> Expr:
        token = self.next()
        if token.kind == "number":
            return self.numeral(token)
        if token.kind == "name":
            return self.name(token)
        if token.kind == "command":
            return self.command(token.text)
        if token.kind == "op" and token.text in _CLOSERS and token.text != r"\{":
            return self.group(_CLOSERS[token.text])
        if token.text in ("...", "∞"):
            return Symbol(token.text)
        if token.text == "|":
            return Apply("abs", (self.group("|"),))
        raise Unreadable(f"unexpected {token.text!r}")

    def numeral(self, token: Token) -> Expr:
        value = number(token.text)
        if value.denominator == 1 and "." not in token.text and (part := self.proper_fraction()):
            value += part
        return Number(value)

    def proper_fraction(self) -> Fraction | None:
        """The fraction of a mixed number such as `2\\frac14` or `2 1/4`, if one follows."""
        start, backup = self.position, self.tokens
        first, slash, second = self.here, self.ahead(1), self.ahead(2)
        if (
            first
            and slash
            and second
            and first.kind == second.kind == "number"
            and slash.text == "/"
            and first.spaced
        ):
            self.position += 3
            part = _proper(Number(number(first.text)), Number(number(second.text)))
        elif first and first.kind == "command" and first.text == "frac":
            self.position += 1
            part = _proper(self.braced(), self.braced())
        else:
            return None
        if part is None or self.at("^"):
            self.position, self.tokens = start, backup
            return None
        return part

    def name(self, token: Token) -> Expr:
        if token.text == "C" and self.at("("):
            return self.combinations()
        letters = list(token.text)
        if len(letters) == 1:
            return self.subscripted(letters[0])
        # In "ab^2" the power belongs to b alone, so the last letter goes back as a token of its own.
        rest = Token("name", letters[-1], False)
        self.tokens = [*self.tokens[: self.position], rest, *self.tokens[self.position :]]
        return _product([*map(Symbol, letters[:-1]), self.power()])

    def subscripted(self, name: str) -> Expr:
        if self.take("_"):
            token = self.next()
            if token.text == "{" and token.kind == "op":
                parts: list[str] = []
                while not self.take("}"):
                    parts.append(self.next().text)
                name += "_" + "".join(parts)
            else:
                name += "_" + token.text
        while self.take("'"):
            name += "'"
        return Symbol(name)

    def combinations(self) -> Expr:
        """C(n,k); a C before any other bracket is a symbol."""
        start = self.position
        self.position += 1
        try:
            top = self.nested(self.sum)
            if self.take(","):
                return Apply("binom", (top, self.group(")")))
        except Unreadable:
            pass
        self.position = start
        return Symbol("C")

    def command(self, name: str) -> Expr:
        if name in _SYMBOLS:
            return self.subscripted(name)
        if name in ("frac", "binom", "dbinom", "tbinom"):
            if self.at("("):  # plain text: frac(1,2) is not LaTeX
                raise Unreadable("frac without arguments")
            above, below = self.braced(), self.braced()
            if above == Symbol("d") and isinstance(below, Apply) and below.args[0] == above:
                raise Unreadable("a derivative")
            return Apply("/" if name == "frac" else "binom", (above, below))
        if name == "sqrt":
            return self.root()
        if name in _FUNCTIONS:
            return self.function(name)
        if name in ("angle", "triangle") and self.here and self.here.kind in ("name", "number"):
            points = self.next().text
            spelled = min(points, points[::-1]) if name == "angle" else "".join(sorted(points))
            return Symbol(f"{name} {spelled}")
        raise Unreadable(f"unknown command {name}")

    def root(self) -> Expr:
        degree = self.group("]") if self.take("[") else Number(Fraction(2))
        token = self.here
        if token is not None and token.kind == "name" and len(token.text) > 1:
            letter, rest = Token("name", token.text[0], False), Token("name", token.text[1:], False)
            self.tokens = [*self.tokens[: self.position], letter, rest, *self.tokens[self.position + 1 :]]
        return Apply("root", (self.nested(self.atom), degree))

    def function(self, name: str) -> Expr:
        base: Expr | None = None
        exponent: Expr | None = None
        while op := self.take("_", "^"):
            if op == "_":
                base = self.argument()
            else:
                exponent = self.argument()
        if self.at("("):
            self.position += 1
            args = [self.nested(self.sum)]
            while self.take(","):
                args.append(self.nested(self.sum))
            if not self.take(")"):
                raise Unreadable("')' is missing")
        else:
            args = [self.nested(self.function_argument)]
        if name == "lg":
            name, base = "log", Number(Fraction(10))
        if name == "ln":
            name, base = "log", Symbol("e")
        if exponent == Apply("neg", (Number(Fraction(1)),)) and name in ("sin", "cos", "tan"):
            name, exponent = f"arc{name}", None
        result = Apply(name, (*args, base) if base is not None else tuple(args))
        return Apply("^", (result, exponent)) if exponent is not None else result

    def function_argument(self) -> Expr:
        """The factors after a function name written without brackets, as in `\\sin 2x`."""
        if self.take("-"):
            return Apply("neg", (self.nested(self.function_argument),))
        factors = [self.power()]
        while self.starts_factor() and not (self.here and self.here.text in (*_FUNCTIONS, "(")):
            factors.append(self.power())
        return _product(factors)


def _product(factors: list[Expr]) -> Expr:
    return factors[0] if len(factors) == 1 else Apply("*", tuple(factors))


def _proper(top: Expr, bottom: Expr) -> Fraction | None:
    if isinstance(top, Number) and isinstance(bottom, Number):
        whole = top.value.denominator == bottom.value.denominator == 1
        if whole and 0 < top.value < bottom.value:
            return top.value / bottom.value
    return None
