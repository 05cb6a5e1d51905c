"""Commands on the tree of continuations: each returns the new page state and keeps all other branches."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from explorer.state.branches import Path, add_branch, fork_depth, prepend_to_branches, prune_branches
from explorer.state.errors import UserError
from explorer.state.page_state import PageState
from explorer.state.run import MAX_TOKENS, parse_token_ids
from explorer.translations import _


def save_branch(state: PageState) -> PageState:
    """Return the state with the current continuation saved as a branch."""
    return replace(state, branches=add_branch(state.branches, state.run.generated))


def replace_continuation(state: PageState, path: Path, generation_start: int) -> PageState:
    """Return the state with another continuation, and the current one saved as a branch."""
    return replace(save_branch(state), run=replace(state.run, generated=path), began=generation_start)


def replace_next_token(state: PageState, position: int, token_id: int) -> PageState:
    """Return the state with the token after `position` replaced; the continuation so far becomes a branch.

    The tokens that followed become a branch. If the prompt continues after `position`, the rest of it becomes part
    of the branches, which start where the prompt now ends.
    """
    state, run, cut = save_branch(state), state.run, position + 1
    if rest := run.prompt[cut:]:
        branches = add_branch(prepend_to_branches(state.branches, rest), rest)
        run = replace(run, prompt=run.prompt[:cut], generated=())
        state = replace(state, run=run, branches=branches)
    path = (*run.generated[: cut - len(run.prompt)], token_id)
    if len(path) > MAX_TOKENS:
        raise UserError(_("{most:,} tokens were generated, as many as fit into a link", most=MAX_TOKENS))
    return replace_continuation(state, path, generation_start=len(path))


def go_to_branch(state: PageState, path: Path) -> PageState:
    """Return the state whose run ends where a path does, and whose generation starts at the path's last fork.

    Raises:
        UserError: no branch has this path.
    """
    paths = [branch.path for branch in save_branch(state).branches]
    if not any(other[: len(path)] == path for other in paths):
        raise UserError(_("there is no such branch (any more)"))
    return replace_continuation(state, path, generation_start=fork_depth(paths, path))


def prune_branch(state: PageState, path: Path) -> PageState:
    """Return the state without the branches that start with a path; such a run ends before the path's last token."""
    branches, generated = prune_branches(state.branches, path), state.run.generated
    if path and generated[: len(path)] == path:
        generated = path[:-1]
    run = replace(state.run, generated=generated)
    return replace(state, run=run, branches=branches, began=min(state.began, len(generated)))


def undo_token(state: PageState) -> PageState:
    """Return the state without the last generated token, which stays in the tree.

    Raises:
        UserError: there is none.
    """
    if not state.run.generated:
        raise UserError(_("There is nothing to undo: no token was generated yet."))
    path = state.run.generated[:-1]
    return replace_continuation(state, path, generation_start=min(state.began, len(path)))


# what the browser names -> what it does; `place` is that of the selected token among all of the run
COMMANDS: dict[str, Callable[[PageState, int, Mapping[str, Any]], PageState]] = {
    "take": lambda asked, place, move: replace_next_token(asked, place, *parse_token_ids([move.get("token")])),
    "go": lambda asked, place, move: go_to_branch(asked, parse_token_ids(move.get("path") or ())),
    "undo": lambda asked, place, move: undo_token(asked),
    "prune": lambda asked, place, move: prune_branch(asked, parse_token_ids(move.get("path") or ())),
}


def apply_command(state: PageState, position: int, command: Any) -> PageState:
    """Return the state after a command such as {"kind": "take", "token": 812}.

    Raises:
        UserError: the command is invalid.
    """
    if not isinstance(command, Mapping) or command.get("kind") not in list(COMMANDS):
        raise UserError(_("a move is one of {kinds}, got {got!r:.80}", kinds=", ".join(COMMANDS), got=command))
    return COMMANDS[command["kind"]](state, position, command)
