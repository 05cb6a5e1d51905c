"""Commands on the tree of continuations, which keep every continuation as a branch."""

import pytest

from explorer.state.page_state import (
    MAX_TOKENS,
    Branch,
    PageState,
    RunRequest,
    apply_command,
    go_to_branch,
    prune_branch,
    replace_next_token,
    undo_tokens,
)
from explorer.state.selection import Selection
from tests.subtest_loops import subtest_each


def make_state(prompt=(1, 2, 3), generated=(4, 5, 6), branches=(), began=0) -> PageState:
    return PageState(RunRequest("rope", prompt, generated), Selection(), branches, began)


def make_branches(*paths) -> tuple[Branch, ...]:
    return tuple(Branch(path) for path in paths)


def test_replaced_token_keeps_old_continuation():
    now = replace_next_token(make_state(), 3, 9)
    assert (now.run.prompt, now.run.generated, now.branches, now.began) == (
        (1, 2, 3),
        (4, 9),
        make_branches((4, 5, 6)),
        2,
    )
    at_the_end = replace_next_token(make_state(), 5, 9)
    assert (at_the_end.run.generated, at_the_end.branches) == ((4, 5, 6, 9), make_branches((4, 5, 6)))
    assert replace_next_token(make_state(), 2, 9).run.generated == (9,)


def test_replacing_token_by_itself_keeps_branches():
    now = replace_next_token(make_state(), 3, 5)
    assert (now.run.generated, now.branches) == ((4, 5), make_branches((4, 5, 6)))


def test_replacing_prompt_token_makes_branch_of_rest():
    now = replace_next_token(make_state(branches=(Branch((7,), "beam"),)), 0, 9)
    assert (now.run.prompt, now.run.generated) == ((1,), (9,))
    assert now.branches == (Branch((2, 3, 7), "beam"), Branch((2, 3, 4, 5, 6)))
    without_branches = replace_next_token(make_state(generated=()), 1, 9)
    assert (without_branches.run.prompt, without_branches.run.generated, without_branches.branches) == (
        (1, 2),
        (9,),
        make_branches((3,)),
    )
    assert go_to_branch(without_branches, (3,)).run.token_ids == (1, 2, 3)


def test_full_context_cannot_take_another_token():
    full = make_state(generated=(4,) * MAX_TOKENS)
    with pytest.raises(ValueError, match="as many as fit"):
        replace_next_token(full, MAX_TOKENS + 2, 9)


def test_go_to_branch_and_back():
    at_branch = go_to_branch(make_state(branches=make_branches((4, 7, 8))), (4, 7, 8))
    assert (at_branch.run.generated, at_branch.began) == ((4, 7, 8), 1)
    back = go_to_branch(at_branch, (4, 5, 6))
    assert (back.run.generated, set(back.branches)) == ((4, 5, 6), set(make_branches((4, 7, 8), (4, 5, 6))))
    assert go_to_branch(back, (4,)).run.generated == (4,)
    with pytest.raises(ValueError, match="no such branch"):
        go_to_branch(back, (9,))


def test_prune_branch_removes_it_from_run():
    before = make_state(branches=make_branches((4, 5, 9), (7,)), began=3)
    now = prune_branch(before, (4, 5, 9))
    assert (now.run.generated, now.branches, now.began) == ((4, 5, 6), make_branches((7,)), 3)
    now = prune_branch(before, (4,))
    assert (now.run.generated, now.branches, now.began) == ((), make_branches((7,)), 0)
    assert prune_branch(before, (8,)) == before


def test_undo_keeps_token_in_tree():
    once = undo_tokens(make_state(began=3))
    assert (once.run.generated, once.branches, once.began) == ((4, 5), make_branches((4, 5, 6)), 2)
    twice = undo_tokens(once)
    assert (twice.run.generated, twice.branches) == ((4,), make_branches((4, 5, 6)))
    assert undo_tokens(make_state(began=3), 2) == twice and not undo_tokens(once, 9).run.generated
    with pytest.raises(ValueError, match="nothing to undo"):
        undo_tokens(make_state(generated=()))


def test_apply_command_dispatches_by_kind():
    assert apply_command(make_state(), 3, {"kind": "take", "token": 9}) == replace_next_token(make_state(), 3, 9)
    assert apply_command(make_state(), 0, {"kind": "go", "path": [4, 5]}) == go_to_branch(make_state(), (4, 5))
    assert apply_command(make_state(), 0, {"kind": "prune", "path": "4.5"}) == prune_branch(make_state(), (4, 5))


@subtest_each(
    "move",
    [{}, {"kind": "<b>"}, {"kind": "take"}, {"kind": "take", "token": "x"}]
    + [{"kind": "take", "token": -1}, {"kind": "go", "path": [[]]}, {"kind": "go", "path": 7}],
    ids=str,
)
def test_invalid_command_is_refused(move):
    with pytest.raises(ValueError):
        apply_command(make_state(), 3, move)
