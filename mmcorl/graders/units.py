"""Units of measurement.

A unit is a product of powers of base dimensions and the exact size of one unit, so that 100 cm is 1 m and 5 m is not
5 cm. Things counted ("12 apples") carry no information beside the number and have no unit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mmcorl.graders.latex import Token
from mmcorl.graders.words import SCALES, words


@dataclass(frozen=True)
class Unit:
    """`name` is how the unit is written; values are compared after multiplication by `factor`, within a dimension."""

    name: str
    dimension: str
    factor: Fraction = Fraction(1)


# symbol, size, in which earlier unit (or the name of a new dimension), then other spellings
_TABLE = """
m 1 length meter meters metre metres 米
in 127/5000 m inch inches 英寸
ft 12 in foot feet 英尺
yd 3 ft yard yards
mi 5280 ft mile miles 英里
km 1000 m 千米 公里
dm 1/10 m 分米
cm 1/100 m 厘米 公分
mm 1/1000 m 毫米
kg 1 mass 千克 公斤
g 1/1000 kg gram grams 克
t 1000 kg ton tons tonne tonnes 吨
lb 45359237/100000000 kg lbs pound pounds
oz 1/16 lb ounce ounces
s 1 time sec second seconds 秒
min 60 s mins minute minutes 分钟
h 60 min hr hrs hour hours 小时 时
day 24 h days 天
week 7 day weeks 周
month 2629746 s months 个月
year 12 month years yr yrs 年
L 1/1000 m^3 l liter liters litre litres 升
mL 1/1000 L 毫升
gal 473176473/125000000 L gallon gallons
qt 1/4 gal quart quarts
pt 1/2 qt pint pints
cup 1/2 pt cups
ha 10000 m^2 hectare hectares 公顷
acre 4840 yd^2 acres
mph 1 mi/h
kmh 1 km/h kph
N 1 kg*m/s^2 newton newtons 牛
J 1 N*m joule joules 焦
cal 523/125 J calorie calories
W 1 J/s watt watts 瓦
hp 7457/10 W horsepower
A 1 current amp amps ampere amperes 安
C 1 A*s coulomb coulombs
V 1 W/A volt volts 伏
Ω 1 V/A ohm ohms Omega 欧
F 1 C/V farad farads
H 1 V*s/A henry henries
T 1 V*s/m^2 tesla teslas
eV 1602176634/10000000000000000000000000000 J electronvolt electronvolts
Hz 1 1/s hertz
Pa 1 N/m^2 pascal pascals
bar 100000 Pa bars
atm 101325 Pa
mol 1 amount mole moles
°C 1 celsius celsius Celsius 摄氏度
K 1 kelvin kelvin kelvins
°F 1 fahrenheit fahrenheit Fahrenheit
cent 1 money cents ¢
dollar 100 cent dollars usd buck bucks
% 1 percent percent percentage
° 1 degree degrees deg 度
"""
_PREFIXES = {
    **{"k": 10**3, "M": 10**6, "G": 10**9, "c": Fraction(1, 100), "m": Fraction(1, 10**3)},
    **{"μ": Fraction(1, 10**6), "n": Fraction(1, 10**9), "p": Fraction(1, 10**12)},
    **{"kilo": 10**3, "mega": 10**6, "giga": 10**9, "centi": Fraction(1, 100), "deci": Fraction(1, 10)},
    **{
        "d": Fraction(1, 10),
        "milli": Fraction(1, 10**3),
        "micro": Fraction(1, 10**6),
        "nano": Fraction(1, 10**9),
    },
}
_PREFIXED = re.compile(f"({'|'.join(sorted(_PREFIXES, key=len, reverse=True))})(.+)")
_PREFIXABLE = words("m g s L l N J W V A C F H T Hz Pa eV mol cal Ω")

_Powers = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class _Size:
    """`dimensions` are powers of base dimensions, `symbols` those of the units as written, both in order."""

    dimensions: _Powers
    symbols: _Powers
    factor: Fraction

    def __mul__(self, other: _Size) -> _Size:
        dimensions = _added(self.dimensions, other.dimensions)
        return _Size(dimensions, _added(self.symbols, other.symbols), self.factor * other.factor)

    def __pow__(self, exponent: int) -> _Size:
        dimensions, symbols = (
            tuple((n, p * exponent) for n, p in powers) for powers in (self.dimensions, self.symbols)
        )
        return _Size(dimensions, symbols, self.factor**exponent)


def _added(a: _Powers, b: _Powers) -> _Powers:
    total = dict(a)
    for name, power in b:
        total[name] = total.get(name, 0) + power
    return tuple(sorted((n, p) for n, p in total.items() if p))


_ONE = _Size((), (), Fraction(1))


def _read_table() -> Mapping[str, _Size]:
    sizes: dict[str, _Size] = {}
    for line in _TABLE.strip().splitlines():
        symbol, amount, base, *spellings = line.split()
        factor = Fraction(amount)
        try:
            size = _Parser(re.findall(r"[a-zA-ZΩ°]+|\d+|[*/^]", base), sizes).whole()
        except _NoUnit:
            size = _Size(((base, 1),), (), Fraction(1))
        named = _Size(size.dimensions, ((symbol, 1),), size.factor * factor)
        sizes |= dict.fromkeys([symbol, *spellings], named)
    return sizes


class _NoUnit(Exception):
    pass


_POWER_WORDS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3, "平方": 2, "立方": 3}
_AFTER_WORDS = {"squared": 2, "cubed": 3}
_NO_UNIT = words("unit units rad rads radian radians yuan euro euros")


class _Parser:
    """Products, quotients and powers of units, from pieces such as `kg`, `*`, `m`, `/`, `s`, `^`, `2`."""

    def __init__(self, pieces: Sequence[str], sizes: Mapping[str, _Size]) -> None:
        self.pieces = pieces
        self.sizes = sizes
        self.position = 0

    @property
    def here(self) -> str:
        return self.pieces[self.position] if self.position < len(self.pieces) else ""

    def take(self, *texts: str) -> str:
        found = self.here if self.here in texts else ""
        self.position += bool(found)
        return found

    def whole(self) -> _Size:
        size = self.product("")
        if self.here or not self.position:
            raise _NoUnit
        return size

    def product(self, closer: str) -> _Size:
        size = self.power()
        while self.here not in ("", closer):
            divided = self.take("/", "per")
            if not divided:
                self.take("*")
            size = size * self.power() ** (-1 if divided else 1)
        return size

    def power(self) -> _Size:
        before = self.take(*_POWER_WORDS)
        size = self.atom() ** _POWER_WORDS.get(before, 1)
        if self.take("^"):
            self.take("{")
            sign = -1 if self.take("-") else 1
            exponent = self.here
            if not re.fullmatch("[1-6]", exponent):
                raise _NoUnit
            self.position += 1
            self.take("}")
            return size ** (sign * int(exponent))
        return size ** _AFTER_WORDS.get(self.take(*_AFTER_WORDS), 1)

    def atom(self) -> _Size:
        if self.take("frac"):
            return self.atom() * self.atom() ** -1
        if opener := self.take("(", "{"):
            size = self.product(closer := ")" if opener == "(" else "}")
            if not self.take(closer):
                raise _NoUnit
            return size
        name = self.here
        self.position += 1
        if name == "1":
            return _ONE
        if name[:2] in _POWER_WORDS and len(name) > 2:
            return self.named(name[2:]) ** _POWER_WORDS[name[:2]]
        return self.named(name)

    def named(self, name: str) -> _Size:
        for spelled in (name, name.lower()) if len(name) > 2 else (name,):
            if spelled in self.sizes:
                return self.sizes[spelled]
            if spelled in _NO_UNIT:
                return _ONE
            prefixed = _PREFIXED.fullmatch(spelled)
            long = prefixed is not None and len(prefixed[1]) > 1 and prefixed[2] in self.sizes
            if prefixed and (long or prefixed[2] in _PREFIXABLE):
                return _prefixed(self.sizes[prefixed[2]], prefixed[1])
        raise _NoUnit


def _prefixed(size: _Size, prefix: str) -> _Size:
    [(symbol, _)] = size.symbols
    factor = _PREFIXES[prefix]
    short = next(p for p, f in _PREFIXES.items() if f == factor)
    return _Size(size.dimensions, ((short + symbol, 1),), size.factor * factor)


_SIZES = _read_table()


@dataclass(frozen=True)
class Suffix:
    """What the words after a number say: a unit or none, and a factor such as a million."""

    unit: Unit | None
    factor: int = 1


def suffix(tail: Sequence[Token]) -> Suffix | None:
    """Read the tokens after a number; None if they are not a unit, a scale or the names of things counted."""
    factor = 1
    while tail and tail[0].kind == "word" and tail[0].text.lower() in SCALES:
        factor *= SCALES[tail[0].text.lower()]
        tail = tail[1:]
    if tail and tail[0].kind == "word" and tail[0].text == "of":  # "3/4 of the pie", but not "3/4 of 20"
        return Suffix(None, factor) if len(tail) > 1 and all(map(_is_noun, tail)) else None
    if not tail:
        return Suffix(None, factor) if factor > 1 else None
    if tail[0].text not in _FIRST and tail[0].kind not in ("word", "name", "command"):
        return None
    unit = _named(_pieces(tail)) if len(tail) <= MAX_PIECES else None
    if unit is None:
        noun = all(map(_is_noun, tail)) and len(tail) <= 4
        return Suffix(None, factor) if noun else None
    single = len(tail[0].text) == 1 and tail[0].kind == "name" and not tail[0].spaced
    return None if single else Suffix(unit, factor)


def unit_of(text: str) -> Unit | None:
    """The unit that plain text such as "km/h" or "square cm" spells, or None."""
    return _named(_PIECE.findall(text)) if len(text) <= 3 * MAX_PIECES else None


MAX_PIECES = 20
_FIRST = ("%", "°", "{")
_PIECE = re.compile(r"°[CF]?|[^\W\d_]+|\d|[%*/^()-]")


def _named(pieces: Sequence[str]) -> Unit | None:
    if list(pieces) == ["per", "cent"]:
        pieces = ["%"]
    try:
        size = _Parser(pieces, _SIZES).whole()
    except _NoUnit:
        return None
    if not size.dimensions:
        return Unit("", "")
    above = "*".join(_power(n, p) for n, p in size.symbols if p > 0)
    below = "".join(f"/{_power(n, -p)}" for n, p in size.symbols if p < 0)
    return Unit((above or "1") + below, "*".join(_power(n, p) for n, p in size.dimensions), size.factor)


def _power(name: str, exponent: int) -> str:
    return name if exponent == 1 else f"{name}^{exponent}"


def _pieces(tail: Sequence[Token]) -> list[str]:
    """Token texts, with what makes up one symbol (°C, kΩ, μm) put together."""
    pieces: list[str] = []
    joined = False
    for token in tail:
        text = (
            {"mu": "μ", "Omega": "Ω"}.get(token.text, token.text) if token.kind == "command" else token.text
        )
        last = pieces[-1] if pieces else ""
        if joined or (text == "Ω" and last in _PREFIXES) or (text in ("C", "F") and last == "°"):
            pieces[-1] += text
        elif token.kind == "word" and not text.isalpha():
            pieces.extend(_PIECE.findall(text))
        else:
            pieces.append(text)
        joined = text == "μ"
    return pieces


def _is_noun(token: Token) -> bool:
    """A word that may be the name of things counted; a name of three letters with a vowel ("12 men") may."""
    if token.kind == "name":
        return (
            token.spaced
            and len(token.text) == 3
            and token.text.islower()
            and bool(set(token.text) & set("aeiou"))
        )
    return token.kind == "word" and token.text.isalpha()
