"""Going about among the continuations: every command asks for another run, and loses none of the others."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from explorer.language import _
from explorer.state.branches import Path, added, forked_at, moved, pruned
from explorer.state.errors import UserError
from explorer.state.page_state import PageState
from explorer.state.run import MOST_TOKENS, parse_ids


def kept(asked: PageState) -> PageState:
    """The run's own continuation is among the branches, so that the run may leave it."""
    return replace(asked, branches=added(asked.branches, asked.run.generated))


def rewritten(asked: PageState, path: Path, began: int) -> PageState:
    """Another continuation; the run's own is kept."""
    return replace(kept(asked), run=replace(asked.run, generated=path), began=began)


def taken(asked: PageState, place: int, token_id: int) -> PageState:
    """Another token after the run's token at `place`: what followed it is kept as a branch.

    Of a prompt that goes on after `place` the rest becomes part of the branches: they begin where the prompt now ends.
    """
    asked, run, cut = kept(asked), asked.run, place + 1
    if rest := run.prompt[cut:]:
        branches = added(moved(asked.branches, rest), rest)
        run = replace(run, prompt=run.prompt[:cut], generated=())
        asked = replace(asked, run=run, branches=branches)
    path = (*run.generated[: cut - len(run.prompt)], token_id)
    if len(path) > MOST_TOKENS:
        raise UserError(_("{most:,} tokens were generated, as many as fit into a link", most=MOST_TOKENS))
    return rewritten(asked, path, began=len(path))


def gone_to(asked: PageState, path: Path) -> PageState:
    """The run ends where a path does; Regenerate begins at its last fork. UserError if no branch goes there."""
    paths = [branch.path for branch in kept(asked).branches]
    if not any(other[: len(path)] == path for other in paths):
        raise UserError(_("there is no such branch (any more)"))
    return rewritten(asked, path, began=forked_at(paths, path))


def without(asked: PageState, path: Path) -> PageState:
    """All that goes through a path is forgotten; the run, if it does, ends before the path's last token."""
    branches, generated = pruned(asked.branches, path), asked.run.generated
    if path and generated[: len(path)] == path:
        generated = path[:-1]
    run = replace(asked.run, generated=generated)
    return replace(asked, run=run, branches=branches, began=min(asked.began, len(generated)))


def undone(asked: PageState) -> PageState:
    """Without the last generated token, which stays in the tree. UserError if there is none."""
    if not asked.run.generated:
        raise UserError(_("There is nothing to undo: no token was generated yet."))
    path = asked.run.generated[:-1]
    return rewritten(asked, path, began=min(asked.began, len(path)))


# what the browser names -> what it does; `place` is that of the selected token among all of the run
MOVES: dict[str, Callable[[PageState, int, Mapping[str, Any]], PageState]] = {
    "take": lambda asked, place, move: taken(asked, place, *parse_ids([move.get("token")])),
    "go": lambda asked, place, move: gone_to(asked, parse_ids(move.get("path") or ())),
    "undo": lambda asked, place, move: undone(asked),
    "prune": lambda asked, place, move: without(asked, parse_ids(move.get("path") or ())),
}


def after(asked: PageState, place: int, move: Any) -> PageState:
    """What is asked after a command such as {"kind": "take", "token": 812}; UserError where it makes no sense."""
    if not isinstance(move, Mapping) or move.get("kind") not in list(MOVES):
        raise UserError(_("a move is one of {kinds}, got {got!r:.80}", kinds=", ".join(MOVES), got=move))
    return MOVES[move["kind"]](asked, place, move)
