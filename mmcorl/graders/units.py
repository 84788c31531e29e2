"""Units of measurement.

A unit is a name of a dimension and the exact size of one unit in it, so that 100 cm is 1 m and 5 m is not 5 cm.
Money and things counted ("12 apples") carry no information beside the number and have no unit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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


PERCENT = Unit("%", "percent")
DEGREE = Unit("°", "degree")

_TABLE = """
length m: 1 m meter meters metre metres 米
length cm: 1/100 cm centimeter centimeters centimetre centimetres 厘米
length mm: 1/1000 mm millimeter millimeters millimetre millimetres 毫米
length dm: 1/10 dm decimeter decimeters decimetre decimetres 分米
length km: 1000 km kilometer kilometers kilometre kilometres 千米 公里
length nm: 1/1000000000 nm nanometer nanometers
length in: 127/5000 inch inches
length ft: 381/1250 ft foot feet
length yd: 1143/1250 yd yard yards
length mi: 201168/125 mile miles mi
mass g: 1 g gram grams 克
mass kg: 1000 kg kilogram kilograms 千克 公斤
mass mg: 1/1000 mg milligram milligrams
mass t: 1000000 ton tons tonne tonnes 吨
mass lb: 45359237/100000 lb lbs pound pounds
mass oz: 45359237/1600000 oz ounce ounces
time s: 1 s sec second seconds 秒
time ms: 1/1000 ms millisecond milliseconds
time min: 60 min mins minute minutes 分钟
time h: 3600 h hr hrs hour hours 小时
time day: 86400 day days 天
time week: 604800 week weeks
time month: 2629746 month months
time year: 31556952 year years yr yrs 年
volume L: 1/1000 L l liter liters litre litres 升
volume mL: 1/1000000 mL ml milliliter milliliters millilitre millilitres 毫升
volume cup: 473176473/2000000000000 cup cups
volume gal: 473176473/125000000000 gal gallon gallons
speed mph: 1397/3125 mph
speed kmh: 5/18 kmh kph
force N: 1 N newton newtons
energy J: 1 J joule joules
energy kJ: 1000 kJ kilojoule kilojoules
power W: 1 W watt watts
power kW: 1000 kW kilowatt kilowatts
voltage V: 1 V volt volts
current A: 1 A amp amps ampere amperes
current mA: 1/1000 mA milliampere milliamperes
resistance Ω: 1 ohm ohms Omega
frequency Hz: 1 Hz hertz
pressure Pa: 1 Pa pascal pascals
pressure kPa: 1000 kPa kilopascal kilopascals
pressure atm: 101325 atm
temperature °C: 1 Celsius celsius
temperature K: 1 K kelvin kelvins
temperature °F: 1 Fahrenheit fahrenheit
money cent: 1 cent cents ¢
charge C: 1 coulomb coulombs
amount mol: 1 mol mole moles
"""


def _read_table() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for line in _TABLE.strip().splitlines():
        head, _, tail = line.partition(":")
        dimension, name = head.split()
        factor, *spellings = tail.split()
        # Temperatures in different scales differ by more than a factor, so each scale is a dimension of its own.
        unit = Unit(name, name if dimension == "temperature" else dimension, Fraction(factor))
        units |= dict.fromkeys([name, *spellings], unit)
    return units


_UNITS = _read_table()
_POWER_WORDS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3, "平方": 2, "立方": 3}
_AFTER_WORDS = {"squared": 2, "cubed": 3}
_NO_UNIT = words("unit units rad radian radians dollar dollars usd")


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
    if tail and tail[0].kind == "word" and tail[0].text == "of":
        return None
    if not tail:
        return Suffix(None, factor) if factor > 1 else None
    if [t.text for t in tail] in (["%"], ["percent"], ["per", "cent"], ["percentage"]):
        return Suffix(PERCENT)
    if [t.text for t in tail] in (["°"], ["degree"], ["degrees"]):
        return Suffix(DEGREE)
    if len(tail) == 2 and tail[0].text == "°" and tail[1].text in ("C", "F"):
        return Suffix(_UNITS[f"°{tail[1].text}"])
    written = _written(tail)
    if written is None:
        return None
    unit = _unit(written)
    if unit is not None:
        single = len(tail[0].text) == 1 and tail[0].kind == "name" and not tail[0].spaced
        return None if single else Suffix(unit, factor)
    if all(map(_is_noun, tail)) and len(tail) <= 4:
        return Suffix(None, factor)
    return None


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


def _written(tail: Sequence[Token]) -> str | None:
    """The tokens as text such as `square cm`, `km/h` or `m/s^2`; None if they cannot spell a unit."""
    if tail[0].kind not in ("word", "name", "command") or len(tail) > 12:
        return None
    text = " ".join(t.text for t in tail if t.text not in "{}")
    text = re.sub(r"\s*([/^*])\s*", r"\1", text).replace(" per ", "/")
    return text if re.fullmatch(r"[^\W\d_]+(?:[ /*][^\W\d_]+|\^-?[1-3])*", text) else None


def _unit(written: str) -> Unit | None:
    """A unit of the table, a power of one, or a quotient of two."""
    if written.lower() in _NO_UNIT or re.fullmatch(r"(?:square|sq|cubic|cu) units?|units?\^[23]", written):
        return Unit("", "")
    top, slash, bottom = written.partition("/")
    if slash:
        above, below = _unit(top), _unit(bottom)
        if above is None or below is None:
            return None
        speed = (above.dimension, below.dimension) == ("length", "time")
        dimension = "speed" if speed else f"{above.dimension}/{below.dimension}"
        return Unit(f"{above.name}/{below.name}", dimension, above.factor / below.factor)
    base, _, exponent = written.partition("^")
    if exponent and not exponent.isdecimal():
        return None
    power = int(exponent) if exponent else 1
    first, *others = base.split()
    if len(others) == 1 and first.lower() in _POWER_WORDS:
        base, power = others[0], _POWER_WORDS[first.lower()]
    elif len(others) == 1 and others[0] in _AFTER_WORDS:
        base, power = first, _AFTER_WORDS[others[0]]
    elif base[:2] in _POWER_WORDS:
        base, power = base[2:], _POWER_WORDS[base[:2]]
    unit = _UNITS.get(base) or _UNITS.get(base.lower() if len(base) > 2 else base)
    if unit is None or power == 1:
        return unit
    dimension = "volume" if (unit.dimension, power) == ("length", 3) else f"{unit.dimension}^{power}"
    return Unit(f"{unit.name}^{power}", dimension, unit.factor**power)
