"""From the many ways of writing mathematics (LaTeX, unicode, plain text) to one stream of tokens.

`clean` removes what does not change the meaning (delimiters, spacing, sizes, fonts) and writes every symbol in one
way; `tokens` cuts the result. Nothing here knows what the symbols mean.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, NamedTuple

from mmcorl.graders.words import words

TokenKind = Literal["number", "name", "word", "command", "op"]


class Unreadable(Exception):
    """The text is not mathematics that this package understands. Never leaves the graders."""


class Token(NamedTuple):
    """A piece of text. `spaced` tells whether white space stood before it ("5 m" is not "5m")."""

    kind: TokenKind
    text: str
    spaced: bool


_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ", "0123456789+-=()n", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋", "0123456789+-", strict=True))
_SYMBOLS = {
    **dict.fromkeys("−–—‐‑‒﹣－", "-"),
    **dict.fromkeys("·⋅∙•×✕∗", "*"),
    **dict.fromkeys("÷∕⁄", "/"),
    **dict.fromkeys("，、", ","),
    **dict.fromkeys("∶：", ":"),
    **dict.fromkeys("∣｜", "|"),
    **dict.fromkeys("º˚", "°"),
    **dict.fromkeys("≤≦⩽", "<="),
    **dict.fromkeys("≥≧⩾", ">="),
    **dict.fromkeys("′’‘", "'"),
    **dict.fromkeys("“”", '"'),
    "≠": "!=",
    "；": ";",
    "∥": r"\parallel ",
    "⊥": r"\perp ",
    "√": r"\sqrt ",
    "∛": r"\sqrt[3]",
    "∠": r"\angle ",
    "…": "...",
    "≅": "≈",
    "∖": r"\setminus ",
    "⟨": r"\langle ",
    "⟩": r"\rangle ",
    "Δ": r"\Delta ",
    "△": r"\triangle ",
}
_GREEK = words(
    """alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi
    chi psi omega"""
)
_SYMBOLS |= {
    unicodedata.lookup(f"GREEK SMALL LETTER {n.upper().replace('LAMBDA', 'LAMDA')}"): f"\\{n} "
    for n in _GREEK
}
_SYMBOL_TABLE = str.maketrans(_SYMBOLS)

_COMMANDS = {
    **dict.fromkeys(("dfrac", "tfrac", "cfrac", "nicefrac", "sfrac"), r"\frac"),
    **dict.fromkeys(("cdot", "times", "ast", "cdotp"), "*"),
    **dict.fromkeys(("le", "leq", "leqslant", "leqq"), "<="),
    **dict.fromkeys(("ge", "geq", "geqslant", "geqq"), ">="),
    **dict.fromkeys(("lt",), "<"),
    **dict.fromkeys(("gt",), ">"),
    **dict.fromkeys(("ne", "neq"), "!="),
    **dict.fromkeys(("infty", "infin"), "∞"),
    **dict.fromkeys(("degree", "circ", "degrees"), "°"),
    **dict.fromkeys(("approx", "simeq", "approxeq", "cong"), "≈"),
    **dict.fromkeys(("mid", "lvert", "rvert", "vert", "lVert", "rVert"), "|"),
    **dict.fromkeys(("ldots", "dots", "cdots", "dotsc", "hdots"), "..."),
    **dict.fromkeys(("emptyset", "varnothing"), "∅"),
    **dict.fromkeys(("lbrace",), r"\{"),
    **dict.fromkeys(("rbrace",), r"\}"),
    **dict.fromkeys(("lbrack",), "["),
    **dict.fromkeys(("rbrack",), "]"),
    **dict.fromkeys(("land", "wedge"), " and "),
    **dict.fromkeys(("lor", "vee"), " or "),
    **dict.fromkeys(
        ("mathrm", "mbox", "textrm", "textbf", "textit", "textnormal", "textsf", "hbox"), r"\text"
    ),
    **dict.fromkeys(("operatorname", "mathop"), r"\operatorname"),
    **dict.fromkeys(("varphi",), r"\phi"),
    **dict.fromkeys(("varepsilon",), r"\epsilon"),
    "div": "/",
    "colon": ":",
    "pm": "±",
    "mp": "∓",
    "cup": "∪",
    "cap": "∩",
    "in": "∈",
    "prime": "'",
    "lang": r"\langle",
    "rang": r"\rangle",
}
_DROPPED = words(
    """left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr displaystyle textstyle limits
    nolimits quad qquad mathbf boldsymbol bm mathit mathsf mathnormal boxed fbox overline underline
    vec hat widehat overrightarrow underbrace therefore because thinspace hspace color rm bf it scriptstyle relax bar ensuremath enspace"""
)
_COMMAND = re.compile(r"\\([a-zA-Z]+)(\*?)")
_REAL_LINE = re.compile(r"\\(?:mathbb|mathbf|Bbb)\s*\{?\s*R\s*\}?|ℝ")
_ORDINAL = re.compile(r"(?<=\d)\s*(?:\^\s*)?(?:\{\s*)?(?:\\text\s*\{\s*)?(?:st|nd|rd|th)\b(?:\s*\}){0,2}")
_GROUPED = (
    re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])"),  # 1,234,567.8
    re.compile(r"(?<![\d.,])\d{1,2}(?:,\d{2})+,\d{3}(?![\d,])"),  # 12,34,567 (lakh)
    re.compile(r"(?<![\d.,])\d{1,3}(?:[ '\u00a0\u2009\u202f]\d{3})+(?![\d,])"),  # 1 234 567
)
_COMMA_AS_POINT = re.compile(  # 1.234.567,8 and 1 234,56
    r"(?<![\d.,])(?:\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}(?:(?:\.\d{3})+|(?: \d{3})+),\d{1,2})(?![\d.,])"
)
_SLIPS_OF_LATEX = (  # slips, spacing, and numerals that LaTeX takes apart
    (re.compile(r"\\{2,}(?=[a-zA-Z])"), r"\\"),
    (re.compile(r"(?<=\d)\s*(?:(?:\\text\s*)?\{,\}|,\s*\\!|\\[,!])\s*(?=\d{3})"), ","),
    (re.compile(r"\\[()\[\],;:! ]|\\\$|\\(?=\s)"), " "),
    (re.compile(r"\\([%#_&])"), r"\1"),
)
_REPEATING = re.compile(r"(?<![\d.])(\d{1,20})\.(\d{0,20})\\(?:overline|bar|dot)\s*\{(\d{1,20})\}")
_GOING_ON = re.compile(r"(?<![\d.])(\d{0,20})\.(\d{0,20}?)(\d{1,8}?)\3+\s*(?:\.\.\.|\\(?:l|c)?dots\b)")
_ABBREVIATION = re.compile(r"\b(sq|cu|ft|in|hrs?|mins?|secs?|lbs?|oz|yd|cm|mm|km|kg|deg)\.(?=\s|$|\})")
_REWRITTEN = (  # a text without the first of these is not searched: older commands, plain text that stands for a symbol
    ("choose", re.compile(r"\{([^{}]{1,40})\\choose\s*([^{}]{1,40})\}"), r"\\binom{\1}{\2}"),
    ("{", re.compile(r"(^|[=+(,-]|\\(?:parallel|perp)\b)\s*\{([A-Z]{1,3})\}"), r"\1 \2"),
    ("x", re.compile(r"(?<=\d)\s*x\s*(?=10\s*(?:\^|\*\*))|(?<=\d)\s+x\s+(?=\d)"), "*"),
    ("X", re.compile(r"(?<=\d)\s*X\s*(?=10\s*(?:\^|\*\*))|(?<=\d)\s+X\s+(?=\d)"), "*"),
    ("^", re.compile(r"(?<=[\d}])\s*\^\s*(?:\{\s*[oO]\s*\}|o(?![a-zA-Z]))"), "°"),
    ("'", re.compile(r"(?<!\d)(\d{1,9})\s*'\s*(\d{1,9}(?:\.\d{1,9})?)\s*(?:\"|'')"), r"\1 ft \2 in"),
    (".", re.compile(r"\b([ap])\.\s?m\b\.?", re.IGNORECASE), r"\1m"),
    ("<", re.compile(r"^\s*<([^<>=]*,[^<>=]*)>\s*$"), r"\\langle \1\\rangle "),
    ("'", re.compile(r"(?<=\d)\s*o'clock\b", re.IGNORECASE), ":00"),
    ("或", re.compile(r"(?<![\u4e00-\u9fff])或者?(?![\u4e00-\u9fff])"), " or "),
    *((c, re.compile(rf"(?<![\u4e00-\u9fff]){c}(?![\u4e00-\u9fff])"), " and ") for c in "和与及"),
)


def clean(text: str) -> str:
    """The same mathematics with one spelling for each symbol and without delimiters, spacing and fonts.

    Cleaning twice gives what cleaning once gave. Linear in the length of the text.
    """
    text = _REAL_LINE.sub(r"\\reals ", spell_scripts(text))
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_SYMBOL_TABLE)).translate(_SYMBOL_TABLE)
        text = re.sub("[€£¥\u200b-\u200f\ufeff]", " ", text)
    if "\\" in text or "{" in text:
        if r"\begin" in text:  # a double backslash ends a row of a matrix; elsewhere it is a slip
            text = re.sub(r"\\{2}", r" \\cr ", text)
        for pattern, symbol in _SLIPS_OF_LATEX:
            text = pattern.sub(symbol, text)
    text = re.sub(r"[$~\x00]", " ", text)
    if "." in text:
        text = _GOING_ON.sub(_spell_repeating, _REPEATING.sub(_spell_repeating, text))
        text = _ABBREVIATION.sub(r"\1 ", text)
    for needed, pattern, symbol in _REWRITTEN:
        if needed in text:
            text = pattern.sub(symbol, text)
    text = _COMMAND.sub(_respell, text)
    text = re.sub(r"\^\s*\{\s*°\s*\}|\^\s*°", "°", text)
    text = _ORDINAL.sub("", text)
    text = _COMMA_AS_POINT.sub(lambda m: re.sub("[. ]", "", m[0]).replace(",", "."), text)
    for pattern in _GROUPED:
        text = pattern.sub(_join_digits, text)
    return " ".join(text.split())


_RESTORED = {"∞": r"\infty ", "°": r"^\circ ", "±": r"\pm ", "∓": r"\mp ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ",
             "∅": r"\emptyset ", "≈": "=", "<=": r"\le ", ">=": r"\ge ", "!=": r"\ne ", "...": r"\ldots ", "%": r"\%",
             r"\cr ": r"\\ ", r"\reals ": r"\mathbb{R} "}  # fmt: skip


def restored(text: str) -> str:
    """Cleaned text as LaTeX that other programs read."""
    for ours, latex in _RESTORED.items():
        text = text.replace(ours, latex)
    return text


def _respell(match: re.Match[str]) -> str:
    name = match[1]
    if name in _DROPPED:
        return " "
    spelled = _COMMANDS.get(name, f"\\{name}")
    return f"{spelled} " if spelled.startswith("\\") and spelled[-1].isalpha() else spelled


def _join_digits(match: re.Match[str]) -> str:
    """A grouped number without its separators; between brackets, as in (100,200), it is a pair."""
    opened = match.string.endswith(("(", "[", r"\{"), 0, match.start())
    closed = match.string.startswith((")", "]", r"\}"), match.end())
    return match[0] if opened and closed else re.sub(r"\D", "", match[0])


def _spell_repeating(match: re.Match[str]) -> str:
    """A repeating decimal as the fraction that it is: 0.1666... is (16 - 1) / 90."""
    whole, fixed, period = match.groups()
    top = int(whole + fixed + period) - int(f"0{whole}{fixed}")
    return rf"\frac{{{top}}}{{{'9' * len(period) + '0' * len(fixed)}}}"


def spell_scripts(text: str) -> str:
    """Write superscripts, subscripts and vulgar fractions out, before NFKC makes x² into x2 and 2½ into 21/2."""
    if text.isascii():
        return text
    text = re.sub(
        f"[{''.join(_SUPERSCRIPTS)}]+",
        lambda m: "^{" + "".join(map(_SUPERSCRIPTS.__getitem__, m[0])) + "}",
        text,
    )
    text = re.sub(
        f"[{''.join(_SUBSCRIPTS)}]+", lambda m: "_{" + "".join(map(_SUBSCRIPTS.__getitem__, m[0])) + "}", text
    )
    return re.sub("[¼-¾⅐-⅞]", _spell_fraction, text)


def _spell_fraction(match: re.Match[str]) -> str:
    top, bottom = unicodedata.normalize("NFKC", match[0]).split("⁄")
    return rf"\frac{{{top}}}{{{bottom}}}"


_TOKEN = re.compile(
    r"""(?P<space>\s+)
    | (?P<number>\d+(?:\.\d+)?[eE][+-]?\d+(?![a-zA-Z\d.])|\d+(?:\.\d+)?|\.\d+)
    | \\text\s*\{(?P<word>[^{}]*)\}
    | \\operatorname\s*\{\s*(?P<operator>[a-zA-Z]+)\s*\}
    | \\(?P<command>[a-zA-Z]+|[{}|])
    | (?P<name>[a-zA-Z]+)
    | (?P<foreign>[^\W\d_a-zA-Z]+)
    | (?P<op><=|>=|!=|\.\.\.|\*\*|[-+*/^_=<>()\[\]{}|,;:!%°'±∓∪∩∈∞∅≈&])
    """,
    re.VERBOSE,
)
SPELLED_COMMANDS = words(
    """frac sqrt binom sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp pi abs gcd lcm min max det angle"""
)
_JOINING = frozenset(("or", "and", "if", "is", "to", "of", "the", "for", "or", "per"))


def tokens(text: str) -> list[Token]:
    """Cut cleaned text. Raises Unreadable at a character that no mathematics here uses."""
    found: list[Token] = []
    position, spaced = 0, False
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise Unreadable(f"unexpected {text[position]!r}")
        position = match.end()
        kind = match.lastgroup
        if kind == "space":
            spaced = True
            continue
        piece = match[kind] if kind else ""
        found.extend(_token(str(kind), piece, spaced))
        spaced = False
    return found


def _token(kind: str, piece: str, spaced: bool) -> list[Token]:
    if kind == "word":
        inner = piece.strip().replace("\\mu ", "μ")
        if re.fullmatch(r"[a-zA-Z]", inner):
            return [Token("name", inner, True)]
        if inner in SPELLED_COMMANDS:
            return [Token("command", inner, spaced)]
        if re.fullmatch(r"\([a-zA-Z]\)", inner):
            return tokens(inner)
        if not re.search(r"[^\W\d_]", inner):
            return tokens(inner)
        return [Token("word", word, True) for word in re.split(r"[\s,.]+", inner) if word]
    if kind == "foreign":
        return [Token("word", piece, spaced)]
    if kind == "command" and piece in "{}|":
        return [Token("op", "||" if piece == "|" else f"\\{piece}", spaced)]
    if kind in ("command", "operator"):
        return [Token("command", piece, spaced)]
    if kind == "name":
        if piece in ("infinity", "infty", "Infinity", "inf", "oo"):
            return [Token("op", "∞", spaced)]
        if piece in SPELLED_COMMANDS:
            return [Token("command", piece, spaced)]
        if piece.lower() in _JOINING or (len(piece) > 3 and not piece.isupper()) or len(piece) > 5:
            return [Token("word", piece, spaced)]
        return [Token("name", piece, spaced)]
    if kind == "op" and piece == "**":
        return [Token("op", "^", spaced)]
    return [Token("number" if kind == "number" else "op", piece, spaced)]
