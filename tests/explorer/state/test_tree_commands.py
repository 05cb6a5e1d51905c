"""Moves among continuations: what is left is kept, and what is kept can be gone back to."""

import pytest

from explorer.state.branches import Branch
from explorer.state.page_state import PageState
from explorer.state.run import MOST_TOKENS, Run
from explorer.state.selection import Selection
from explorer.state.tree_commands import after, gone_to, taken, undone, without


def question(prompt=(1, 2, 3), generated=(4, 5, 6), branches=(), began=0) -> PageState:
    return PageState(Run("rope", prompt, generated), Selection(), branches, began)


def of(*paths) -> tuple[Branch, ...]:
    return tuple(Branch(path) for path in paths)


def test_another_token_is_taken_and_the_former_continuation_kept():
    now = taken(question(), 3, 9)
    assert (now.run.prompt, now.run.generated, now.branches, now.began) == ((1, 2, 3), (4, 9), of((4, 5, 6)), 2)
    at_the_end = taken(question(), 5, 9)
    assert (at_the_end.run.generated, at_the_end.branches) == ((4, 5, 6, 9), of((4, 5, 6)))
    assert taken(question(), 2, 9).run.generated == (9,)


def test_the_token_that_is_there_already_changes_no_branch():
    now = taken(question(), 3, 5)
    assert (now.run.generated, now.branches) == ((4, 5), of((4, 5, 6)))


def test_within_the_prompt_its_rest_becomes_a_branch():
    now = taken(question(branches=(Branch((7,), "beam"),)), 0, 9)
    assert (now.run.prompt, now.run.generated) == ((1,), (9,))
    assert now.branches == (Branch((2, 3, 7), "beam"), Branch((2, 3, 4, 5, 6)))
    alone = taken(question(generated=()), 1, 9)
    assert (alone.run.prompt, alone.run.generated, alone.branches) == ((1, 2), (9,), of((3,)))
    assert gone_to(alone, (3,)).run.token_ids == (1, 2, 3)


def test_there_is_a_most_of_what_can_be_taken():
    full = question(generated=(4,) * MOST_TOKENS)
    with pytest.raises(ValueError, match="as many as fit"):
        taken(full, MOST_TOKENS + 2, 9)


def test_one_goes_to_a_branch_and_back():
    there = gone_to(question(branches=of((4, 7, 8))), (4, 7, 8))
    assert (there.run.generated, there.began) == ((4, 7, 8), 1)
    back = gone_to(there, (4, 5, 6))
    assert (back.run.generated, set(back.branches)) == ((4, 5, 6), set(of((4, 7, 8), (4, 5, 6))))
    assert gone_to(back, (4,)).run.generated == (4,)
    with pytest.raises(ValueError, match="no such branch"):
        gone_to(back, (9,))


def test_a_branch_is_forgotten_and_the_run_with_it():
    before = question(branches=of((4, 5, 9), (7,)), began=3)
    now = without(before, (4, 5, 9))
    assert (now.run.generated, now.branches, now.began) == ((4, 5, 6), of((7,)), 3)
    now = without(before, (4,))
    assert (now.run.generated, now.branches, now.began) == ((), of((7,)), 0)
    assert without(before, (8,)) == before


def test_undoing_takes_a_token_and_leaves_it_in_the_tree():
    once = undone(question(began=3))
    assert (once.run.generated, once.branches, once.began) == ((4, 5), of((4, 5, 6)), 2)
    twice = undone(once)
    assert (twice.run.generated, twice.branches) == ((4,), of((4, 5, 6)))
    with pytest.raises(ValueError, match="nothing to undo"):
        undone(question(generated=()))


def test_the_browser_names_a_move():
    assert after(question(), 3, {"kind": "take", "token": 9}) == taken(question(), 3, 9)
    assert after(question(), 0, {"kind": "go", "path": [4, 5]}) == gone_to(question(), (4, 5))
    assert after(question(), 0, {"kind": "prune", "path": "4.5"}) == without(question(), (4, 5))


@pytest.mark.parametrize(
    "move",
    [None, "take", {}, {"kind": "<b>"}, {"kind": ["take"]}, {"kind": "take"}, {"kind": "take", "token": "x"}]
    + [{"kind": "take", "token": -1}, {"kind": "go", "path": [[]]}, {"kind": "go", "path": 7}],
    ids=str,
)
def test_a_move_that_makes_no_sense_is_refused(move):
    with pytest.raises(ValueError):
        after(question(), 3, move)
