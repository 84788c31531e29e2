import math

import pytest

from mmcorl.cohort.ballots import Ballot
from mmcorl.cohort.sameness import digest, require_different, surprise
from mmcorl.errors import CohortMismatch


def ballots(*groups):
    return [Ballot(len(texts), (), digest(texts)) for texts in groups]


def check(own, theirs):
    require_different("a", {"a": ballots(*own), "b": ballots(*theirs)}, [surprise(texts) for texts in own])


DIFFERENT = [[f"thought {k} of {n}" for k in range(8)] for n in range(4)]


def test_surprise_is_the_log_of_the_number_of_orders():
    assert surprise(["a", "b", "c"]) == pytest.approx(math.log2(6))
    assert surprise(["a", "b", "a", "a"]) == pytest.approx(2)
    assert surprise(["a"] * 8) == pytest.approx(0)


def test_digests_tell_texts_their_borders_and_their_order():
    assert (
        len({digest(texts) for texts in (["ab", "c"], ["a", "bc"], ["c", "ab"], ["abc"], ["ab", "c", ""])})
        == 5
    )
    assert digest(["ab", "c"]) == digest(["ab", "c"])


def test_the_same_completions_in_the_same_order_are_refused():
    with pytest.raises(CohortMismatch, match="a and b sampled the same completions"):
        check(DIFFERENT, DIFFERENT)


def test_one_other_completion_is_another_agent():
    check(DIFFERENT, [*DIFFERENT[:-1], [*DIFFERENT[-1][:-1], "something else"]])
    check(DIFFERENT, [*DIFFERENT[:-1], DIFFERENT[-1][::-1]])


def test_agents_that_always_say_the_same_are_not_refused():
    """Two collapsed agents agree in every text, and nothing tells whether their noise does."""
    collapsed = [["It is 5."] * 8] * 40
    check(collapsed, collapsed)


def test_little_evidence_is_no_evidence():
    check(DIFFERENT[:1], DIFFERENT[:1])
