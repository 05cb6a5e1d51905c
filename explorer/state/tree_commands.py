"""Going about among the continuations: every move is a question with another run, and loses none of the others."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from explorer.state.branches import Path, added, forked_at, moved, pruned
from explorer.state.errors import UserError
from explorer.state.run import MOST_TOKENS, parse_ids
from explorer.web.presenter import Question


def kept(question: Question) -> Question:
    """The run's own continuation is among the branches, so that the run may leave it."""
    return replace(question, branches=added(question.branches, question.run.generated))


def rewritten(question: Question, path: Path, began: int) -> Question:
    """Another continuation; the run's own is kept."""
    return replace(kept(question), run=replace(question.run, generated=path), began=began)


def taken(question: Question, place: int, token_id: int) -> Question:
    """Another token after the run's token at `place`: what followed it is kept as a branch.

    Of a prompt that goes on after `place` the rest becomes part of the branches: they begin where the prompt now ends.
    """
    question, run, cut = kept(question), question.run, place + 1
    if rest := run.prompt[cut:]:
        branches = added(moved(question.branches, rest), rest)
        run = replace(run, prompt=run.prompt[:cut], generated=())
        question = replace(question, run=run, branches=branches)
    path = (*run.generated[: cut - len(run.prompt)], token_id)
    if len(path) > MOST_TOKENS:
        raise UserError(f"{MOST_TOKENS:,} tokens were generated, as many as fit into a link")
    return rewritten(question, path, began=len(path))


def gone_to(question: Question, path: Path) -> Question:
    """The run ends where a path does; Regenerate begins at its last fork. UserError if no branch goes there."""
    paths = [branch.path for branch in kept(question).branches]
    if not any(other[: len(path)] == path for other in paths):
        raise UserError("there is no such branch (any more)")
    return rewritten(question, path, began=forked_at(paths, path))


def without(question: Question, path: Path) -> Question:
    """All that goes through a path is forgotten; the run, if it does, ends before the path's last token."""
    branches, generated = pruned(question.branches, path), question.run.generated
    if path and generated[: len(path)] == path:
        generated = path[:-1]
    run = replace(question.run, generated=generated)
    return replace(question, run=run, branches=branches, began=min(question.began, len(generated)))


def undone(question: Question) -> Question:
    """Without the last generated token, which stays in the tree. UserError if there is none."""
    if not question.run.generated:
        raise UserError("There is nothing to undo: no token was generated yet.")
    path = question.run.generated[:-1]
    return rewritten(question, path, began=min(question.began, len(path)))


# what the browser names -> what it does; `place` is that of the selected token among all of the run
MOVES: dict[str, Callable[[Question, int, Mapping[str, Any]], Question]] = {
    "take": lambda question, place, move: taken(question, place, *parse_ids([move.get("token")])),
    "go": lambda question, place, move: gone_to(question, parse_ids(move.get("path") or ())),
    "undo": lambda question, place, move: undone(question),
    "prune": lambda question, place, move: without(question, parse_ids(move.get("path") or ())),
}


def after(question: Question, place: int, move: Any) -> Question:
    """The question after a move such as {"kind": "take", "token": 812}; UserError where it makes no sense."""
    if not isinstance(move, Mapping) or move.get("kind") not in list(MOVES):
        raise UserError(f"a move is one of {', '.join(MOVES)}, got {move!r:.80}")
    return MOVES[move["kind"]](question, place, move)
