import pytest

from mmcorl.analysis.report.digests import Vote
from mmcorl.analysis.report.outcomes import count_outcomes, pairs
from mmcorl.analysis.report.problems import Judge, Problems
from mmcorl.problems import Problem

NAMES = ("p", "q", "r", "s")
PROBLEMS = Problems({name: Problem(name, "How many?") for name in NAMES}, dict.fromkeys(NAMES, "1/2"))


def votes(*answers, step=1):
    return [Vote(step, name, answer) for name, answer in zip(NAMES, answers, strict=True)]


def shares(span):
    return [span.share(outcome) for outcome in ("both", "first", "second", "neither")]


def test_each_problem_has_one_of_four_outcomes_and_an_abstention_is_not_right():
    with Judge(PROBLEMS) as judge:
        both = {"ann": votes("0.5", "1/2", "3", None), "bob": votes("1/2", "7", "1/2", None)}
        found = count_outcomes(both, "ann", "bob", judge)
    [span] = found.spans
    assert shares(span) == [0.25, 0.25, 0.25, 0.25]
    assert span.counts.total() == 4


def test_only_problems_that_both_voted_on_and_that_are_labelled_count():
    some = Problems(PROBLEMS.by_id, {"p": "1/2", "q": "1/2"})
    with Judge(some) as judge:
        found = count_outcomes(
            {"ann": votes(*["1/2"] * 4), "bob": votes(*["1/2"] * 4)[1:]}, "ann", "bob", judge
        )
        assert found.spans[0].counts == {"both": 1}
        assert count_outcomes({"ann": votes(*["1/2"] * 4), "bob": []}, "ann", "bob", judge) is None
    with Judge(Problems()) as judge:
        assert count_outcomes({name: votes(*["1"] * 4) for name in ("a", "b")}, "a", "b", judge) is None


def test_a_long_run_is_judged_at_steps_evenly_spaced_and_cut_into_spans():
    every = [vote for step in range(1, 3001) for vote in votes(*["1/2"] * 4, step=step)]
    with Judge(PROBLEMS) as judge:
        found = count_outcomes({"ann": every, "bob": every}, "ann", "bob", judge)
    assert (found.judged_steps, found.steps, len(found.spans)) == (500, 3000, 20)
    assert (found.spans[0].first_step, found.spans[-1].last_step) == (1, 3000)
    assert sum(span.counts["both"] for span in found.spans) == 2000


@pytest.mark.parametrize(
    ("agents", "expected"),
    [("a", []), ("ab", ["ab"]), ("abc", ["ab", "ac", "bc"]), ("abcd", ["da", "ab", "bc", "cd"])],
)
def test_a_large_cohort_is_looked_at_along_the_ring(agents, expected):
    assert ["".join(pair) for pair in pairs(list(agents))] == expected
