"""Hostile text: nothing raises, hangs, fills the memory or is ever evaluated.

`python tests/graders/test_hostile.py 10000` runs as many strings as one likes, and reports.
"""

import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mmcorl.graders import Extraction, Grader
from mmcorl.graders.conventions import convention
from mmcorl.graders.pool import Pool
from mmcorl.problems import Problem

PROBLEMS = [
    Problem("open", "What is it?"),
    Problem("choice", "Which?", choices=("5", "x^2", r"\frac12", "None of the above"), kind="choice"),
    Problem("inlined", "Which? (A) 3 (B) 4 (C) 5", kind="choice"),
    Problem("text", "Who?", kind="text"),
    Problem("code", "Write it.", kind="code"),
]
MATHVISTA = convention("mathvista", precision=2)
GOLDS = ["5", r"\frac{1}{3}", "x=2", r"2\sqrt{2}", "(1, 2]", "A"]
CANARY = "evaluated"  # the file that every injection tries to create
INJECTIONS = [
    f"__import__('os').system('touch {CANARY}')",
    f'open("{CANARY}", "w").write("x")',
    f"exec(\"open('{CANARY}','w')\")",
    f"eval(compile('open(\"{CANARY}\",\"w\")','','exec'))",
    f"(lambda: open('{CANARY}','w'))()",
    f"[c for c in ().__class__.__base__.__subclasses__()][0]('{CANARY}')",
    f"Symbol('x').__class__.__mro__[-1].__subclasses__() or open('{CANARY}','w')",
    f"sympify(\"open('{CANARY}','w')\")",
    f"\\text{{open('{CANARY}','w')}}",
    f"\\operatorname{{open}}({CANARY},w)",
    f"\\frac{{open(chr(101),chr(119))}}{{{CANARY}}}",
    f"\\input{{|touch {CANARY}}} \\write18{{touch {CANARY}}}",
    f"$(touch {CANARY})",
    f"`touch {CANARY}`; touch {CANARY} #",
    f"'; touch {CANARY}; '",
    f'{{"answer": "!!python/object/apply:os.system [touch {CANARY}]"}}',
    f"<script>fetch('{CANARY}')</script><answer>5</answer>",
]
FORMATS = ["{0.__class__.__init__.__globals__}", "%s%n%x", "%(x)s", "${7*7}", "{{7*7}}", "{!r:>999999999}", "%999999999d"]  # fmt: skip
ODD = "\x00\x01\x1b\u202e\u200d\u200b\ufeff\u0301\u0336\ud800\udfff\uffff😀𝟝𝒙٣५五Ⅳ½²₂ﬀſßİı＝（）｛｝＼ℝ∞∅√∛∠°′⁄∕﷽"
PIECES = [*"0123456789", *"+-*/^_=<>!|&%$#~'\"`,;:.()[]{}\\ \n", "\\frac", "\\sqrt", "\\left(", "\\right]", "\\boxed{", "\\begin{pmatrix}",
          "\\end{pmatrix}", "\\text{", "\\pm", "\\cup", "\\in", "\\infty", "\\sum_{k=1}^{n}", "\\int", "\\lim_{x\\to0}", "\\log_", "\\sin", "!!",
          "**", "e9", "1e99", "x", "pi", " or ", " and ", "answer is ", "</think>", "<answer>", "</answer>", "degrees", "None", "nan", "inf", "i"]  # fmt: skip


def hostile(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """(kind, text), the same for a seed; one in a hundred has up to a million characters."""
    rng = random.Random(seed)
    kinds = [k for k in MAKERS if k != "symbolic"] * 8 + [
        "symbolic"
    ]  # these cost the workers' whole time limit
    texts = []
    for index in range(count):
        kind = kinds[index % len(kinds)]
        size = rng.choice([3, 10, 40, 200]) if rng.random() > 0.08 else rng.choice([1_000, 5_000])
        text = MAKERS[kind](rng, 200_000 if rng.random() < 0.01 else size)
        texts.append((kind, rng.choice(DRESSES).replace("@", text[:1_000_000])))
    return texts


DRESSES = ["@", "@", r"\boxed{@}", "<answer>@</answer>", "The answer is @.", "$@$", r"\boxed{@", "<think>@", r"\frac{@}{2}",
           "答案是@", "x=@", "@%", "@ and @", "(B) @", "```\n@\n```", '{"answer": "@"}', r"\sqrt{@}", "(@, @)"]  # fmt: skip

MAKERS = {
    "braces": lambda r, n: r.choice("{([") * n + r.choice(["5", ""]) + r.choice("})]") * r.choice([n, 0, n - 1]),
    "fractions": lambda r, n: r.choice([r"\frac{", r"\sqrt{", r"\boxed{", r"\left(", "-(", r"\text{", "|", "1/("]) * n + "1" + "}{2}" * r.choice([n, 0]),
    "towers": lambda r, n: r.choice(["9^{", "9^(", "9**", "2^", r"e^{\pi^", r"\exp(", "10^-"]) * n + "9" + r.choice(["}", ")", ""]) * n,
    "factorials": lambda r, n: "(" * min(n, 50) + str(r.randrange(10**9)) + r.choice(["!)", "!!)", ")!"]) * min(n, 50),
    "digits": lambda r, n: r.choice(["", "-", "0.", "1e", "1/"]) + "".join(r.choices("0123456789", k=min(5 * n, 1_000_000))) + r.choice(["", "!", "%", "^2", "e99999"]),
    "zalgo": lambda r, n: "".join(c + "".join(chr(r.randrange(0x300, 0x36F)) for _ in range(n // 4)) for c in "5+x"),
    "injection": lambda r, n: r.choice(INJECTIONS) + r.choice(["", "+5", "=5", "^2", "!"]),
    "formats": lambda r, n: r.choice(FORMATS) * min(n, 100) + r.choice(["5", ""]),
    "odd": lambda r, n: "".join(r.choices(ODD + "5x+", k=n)),
    "soup": lambda r, n: "".join(r.choices(PIECES, k=n)),
    "lists": lambda r, n: r.choice(["1,", "x=1,", "(1,2),", r"\pm 1,", "1 or ", "1:", r"1 & 2 \\ ", "[0,1]\\cup", "1<x<", "A, "]) * n,
    "repeats": lambda r, n: r.choice(["answer is ", "</think>", "<think>", "<answer>", "答案", " ", "\n", "a", "A. ", "**", "$", "#", "x+", "sin ", "\\", "°"]) * n,
    "symbolic": lambda r, n: r.choice([r"\int_0^{@} x^x dx", r"\sum_{k=1}^{@} \frac{1}{k!}", r"\prod_{k=1}^{@} k^k", r"\lim_{x\to @} x^{x^x}", r"\binom{@}{2}", r"@! \cdot \log_{@} @"]).replace("@", str(10 ** r.randrange(9))),
}  # fmt: skip


def report(count: int) -> dict[str, Any]:
    """Grade the strings in every way, in this process, and say what happened. Raises what the grader raises."""
    slowest: tuple[float, str] = (0.0, "")
    happened: list[str] = []
    with Grader(Extraction(last_number=True)) as grader:
        grader.warm()
        golds = {p.id: [grader.read(g, p) for g in GOLDS] for p in PROBLEMS}
        # From here on, nothing has a reason to compile or run source text, or to start a program but the workers.
        sys.addaudithook(lambda event, details: _note(happened, event, details))
        started = time.perf_counter()
        for index, (kind, text) in enumerate(hostile(count)):
            problem = PROBLEMS[index % len(PROBLEMS)]
            gold = golds[problem.id][index // len(PROBLEMS) % len(GOLDS)]

            def timed(call: Callable[..., Any], *arguments: Any, kind: str = kind, text: str = text) -> Any:
                nonlocal slowest
                begun = time.perf_counter()
                result = call(*arguments)
                taken = time.perf_counter() - begun
                what = f"{call.__name__} of {kind}, {len(text)} characters: {text[:80]!a}"
                slowest = max(slowest, (taken, what))
                return result

            for answer in (
                timed(grader.answer, text, problem),
                timed(grader.answer, text, problem, MATHVISTA),
                timed(grader.read, text, problem),
            ):
                if answer is not None:
                    assert timed(grader.same, answer, answer)
                    assert timed(grader.classes, [answer, None, answer]) == [[0, 2]]
                if answer is not None and gold is not None:
                    right = timed(grader.correct, answer, gold, problem)
                    assert timed(grader.same, answer, gold) == grader.same(gold, answer) == right
                    assert timed(grader.correct, answer, gold, problem, MATHVISTA) or not right
        seconds = time.perf_counter() - started
        given_up = grader.timeouts
    # The peak of getrusage would begin with that of the process that started this one.
    status = Path("/proc/self/status").read_text().splitlines()
    own = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    return {"strings": count, "seconds": round(seconds, 1), "slowest": slowest, "given up": given_up,
            "MB": own, "MB of a worker": workers, "evaluated": happened}  # fmt: skip


def _note(found: list[str], event: str, details: tuple[Any, ...]) -> None:
    if event in ("compile", "exec", "os.system", "os.exec", "ctypes.dlopen", "pickle.find_class"):
        found.append(f"{event} {details!r:.200}")
    if event == "subprocess.Popen" and "mmcorl.graders.worker" not in details[1]:
        found.append(f"{event} {details!r:.200}")


def test_a_thousand_hostile_strings(tmp_path):
    done = subprocess.run([sys.executable, __file__, "1000"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["strings"] == 1000
    assert seen["evaluated"] == []
    assert list(tmp_path.iterdir()) == [], "an injection wrote a file"
    assert seen["slowest"][0] < 10, "only a worker's time limit may take a while"
    assert seen["MB"] + 2 * seen["MB of a worker"] < 1000


def test_workers_evaluate_nothing_even_of_what_they_are_never_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pool = Pool(workers=1)
    for payload in INJECTIONS:
        assert not pool.same(payload, "5", 5)
    pool.close()
    assert list(tmp_path.iterdir()) == [], "an injection wrote a file"


if __name__ == "__main__":
    print(json.dumps(report(int(sys.argv[1])), indent=2))
