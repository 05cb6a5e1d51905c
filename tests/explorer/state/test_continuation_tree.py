"""Branches of continuations, as text and as a tree."""

import math

import pytest

from explorer.state.page_state import (
    MAX_BRANCH_TOKENS,
    MAX_BRANCHES,
    MAX_TOKENS,
    Branch,
    add_or_extend_branch,
    build_tree,
    fork_depth,
    format_branches,
    parse_branches,
    prepend_to_branches,
    prune_branches,
)
from tests.subtest_loops import subtest_each


def make_branches(*paths) -> tuple[Branch, ...]:
    return tuple(Branch(path) for path in paths)


def test_branches_round_trip():
    branches = (Branch((12, 7, 300)), Branch((12, 9), "beam"), Branch((4,), "greedy"))
    assert format_branches(branches) == "12.7.300~beam:12.9~greedy:4"
    assert parse_branches(format_branches(branches)) == branches
    assert parse_branches("") == ()


@subtest_each("text", ["1.x", "~", "1~", "chance:1.2", "beam:beam:1", "-1", "1.2~" * 99 + "1", "<b>"], ids=str)
def test_invalid_branches_are_refused(text):
    with pytest.raises(ValueError, match=r"branch|token ids"):
        parse_branches(text)


def test_oldest_branches_are_dropped_beyond_limit():
    branches = ()
    for i in range(MAX_BRANCHES + 3):
        branches = add_or_extend_branch(branches, (i, 1))
    assert len(branches) == MAX_BRANCHES and branches[0].path == (3, 1) and branches[-1].path == (MAX_BRANCHES + 2, 1)
    for i in range(5):
        branches = add_or_extend_branch(branches, (100 + i,) * MAX_TOKENS)
    assert sum(len(branch.path) for branch in branches) <= MAX_BRANCH_TOKENS
    assert branches[-1].path[0] == 104
    assert parse_branches(format_branches(branches)) == branches


def test_longer_continuation_replaces_its_prefix():
    assert add_or_extend_branch(make_branches((1, 2)), (1, 2, 3)) == make_branches((1, 2, 3))
    assert (
        add_or_extend_branch(make_branches((1, 2, 3)), (1, 2))
        == add_or_extend_branch(make_branches((1, 2, 3)), (1, 2, 3))
        == make_branches((1, 2, 3))
    )
    assert add_or_extend_branch(make_branches((1, 2)), (1, 3)) == make_branches((1, 2), (1, 3))
    assert add_or_extend_branch(make_branches((1,)), ()) == make_branches((1,))


def test_branch_with_origin_keeps_it():
    beam = (Branch((1, 2), "beam"),)
    assert add_or_extend_branch(beam, (1, 2, 3)) == (*beam, Branch((1, 2, 3)))
    assert add_or_extend_branch(beam, (1, 2)) == add_or_extend_branch(beam, (1, 2), "beam") == beam
    assert add_or_extend_branch(make_branches((1, 2)), (1, 2), "beam") == beam
    assert add_or_extend_branch(beam, (1, 2), "greedy") == (*beam, Branch((1, 2), "greedy"))


def test_pruning_removes_all_with_prefix():
    branches = make_branches((1, 2, 3), (1, 2, 4), (1, 5))
    assert prune_branches(branches, (1, 2)) == make_branches((1, 5))
    assert prune_branches(branches, (1, 2, 4)) == make_branches((1, 2, 3), (1, 5))
    assert prune_branches(branches, (2,)) == branches


def test_prepended_tokens_extend_branches():
    assert prepend_to_branches((Branch((1,), "beam"), Branch((2, 3))), (8, 9)) == (
        Branch((8, 9, 1), "beam"),
        Branch((8, 9, 2, 3)),
    )
    assert prepend_to_branches(make_branches((1,) * MAX_TOKENS), (7,)) == ()


@pytest.mark.parametrize(
    ("path", "others", "fork"),
    [
        ((1, 2, 3), [], 0),
        ((1, 2, 3), [(1, 2, 3, 4)], 0),
        ((1, 2, 3), [(1, 5), (4,)], 1),
        ((1, 2, 3), [(1, 2, 9), (1, 5)], 2),
    ],
)
def test_fork_depth_is_last_fork(path, others, fork):
    assert fork_depth([path, *others], path) == fork


SURPRISALS = {
    (1, 2, 3, 4): [0.5, 1.0, 2.0, 4.0],
    (1, 2, 5): [0.5, 1.0, 1.5],
    (1, 2, 5, 6): [0.5, 1.0, 1.5, 3.0],
    (7,): [0.25],
}


def test_tree_segments_run_between_forks():
    stretches = build_tree(SURPRISALS)
    assert [(s.path, s.start, s.parent, s.depth) for s in stretches] == [
        ((7,), 0, -1, 0),
        ((1, 2), 0, -1, 0),
        ((1, 2, 5), 2, 1, 1),
        ((1, 2, 5, 6), 3, 2, 1),  # no fork: a longer path continues where another ends
        ((1, 2, 3, 4), 2, 1, 1),
    ]
    assert [s.is_leaf for s in stretches] == [True, False, False, True, True]
    assert [(s.first, s.bits, s.total) for s in stretches] == [
        (0.25, 0.25, 0.25),
        (0.5, 1.5, 1.5),
        (1.5, 1.5, 3.0),
        (3.0, 3.0, 6.0),
        (2.0, 6.0, 7.5),
    ]


def test_segments_of_path_join_to_path():
    stretches = build_tree(SURPRISALS)
    for path, bits in SURPRISALS.items():
        on_the_way = [s for s in stretches if path[: len(s.path)] == s.path]
        tokens = [token for s in on_the_way for token in s.path[s.start :]]
        assert tuple(tokens) == path
        assert on_the_way[-1].total == math.fsum(s.bits for s in on_the_way) == sum(bits)


def test_no_continuations_give_empty_tree():
    assert build_tree({}) == []
