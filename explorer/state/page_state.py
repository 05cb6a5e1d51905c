"""The page's state, parsed from the browser's, and commands on its tree of continuations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from explorer.errors import UserError
from explorer.interventions import CrossRunIntervention
from explorer.state.chat_messages import parse_chat
from explorer.state.continuation_tree import (
    Branches,
    Path,
    add_or_extend_branch,
    fork_depth,
    format_branches,
    parse_branches,
    prepend_to_branches,
    prune_branches,
)
from explorer.state.run_request import MAX_TOKENS, RunRequest, parse_token_ids
from explorer.state.selection import Selection, parse_index
from explorer.state.token_alignment import Pins, format_pins, parse_pins
from explorer.translations import _

OTHER_PREFIX = "b."  # before the names of the second run's fields


@dataclass(frozen=True)
class PageState:
    """The page's state: the runs, and the selection.

    Attributes:
        run: with the continuation that is displayed.
        selection: the selected elements and options.
        branches: other continuations of the same prompt.
        began: number of tokens generated before the last generation.
        turn: revision of the run, so that the browser can drop late responses: the last tokens of a cancelled
            generation may arrive after the response to the command that cancelled it.
        other: the run that it is compared with; without a prompt it has the same text. None for none.
        pins: pairs of positions that the user aligned.
        chat: messages that the prompt was written from by the model's chat template (see `chat_messages`); "" for none.

    Patches of either run take values of the other one here, computed without that run's own patches.
    """

    run: RunRequest
    selection: Selection
    branches: Branches = ()
    began: int = 0
    turn: int = 0
    other: RunRequest | None = None
    pins: Pins = ()
    chat: str = ""

    def __post_init__(self):
        object.__setattr__(self, "run", self.run.with_patch_source(self.other, self.pins))
        if self.other:
            reverse_pins = tuple((b, a) for a, b in self.pins)
            object.__setattr__(self, "other", self.other.with_patch_source(self.run, reverse_pins))

    def without_patches(self) -> "PageState":
        """Return the state without patches in either run."""
        return replace(self, run=self.run.without_patches(), other=self.other and self.other.without_patches())

    @property
    def patches(self) -> tuple[CrossRunIntervention, ...]:
        """Patches of both runs."""
        return self.run.patches + (self.other.patches if self.other else ())

    @classmethod
    def parse(cls, state: Mapping[str, Any]) -> "PageState":
        """Parse the browser's state; invalid parts of the selection are left out.

        Raises:
            UserError: the run is invalid.
        """
        if not isinstance(state, Mapping):
            raise UserError(_("the page’s state is an object, got {got!r:.80}", got=state))
        selection, run = Selection.parse(state), RunRequest.parse(state)
        began = min(parse_index(state.get("began")) or 0, len(run.generated))
        branches = parse_branches(state.get("branches") or "")
        other = {
            name.removeprefix(OTHER_PREFIX): value for name, value in state.items() if name.startswith(OTHER_PREFIX)
        }
        pins = parse_pins(other.pop("pins", ""))
        other_run = RunRequest.parse(other) if other.get("checkpoint") else None
        chat, pins = parse_chat(state.get("chat")), pins if other_run else ()
        return cls(run, selection, branches, began, parse_revision(state), other_run, pins, chat)

    @property
    def visible_second_run(self) -> RunRequest | None:
        """The second run if the open tab shows two runs: the story shows one."""
        return None if self.selection.is_story else self.other

    def as_dict(self) -> dict[str, Any]:
        return self.run.as_dict() | self.selection.as_dict() | self.tree_as_dict() | self.other_as_dict()

    def other_as_dict(self) -> dict[str, Any]:
        """Return the fields of the second run; empty values under the same names if there is none."""
        fields = self.other.as_dict() if self.other else dict.fromkeys(self.run.as_dict(), "")
        return {OTHER_PREFIX + name: value for name, value in fields.items()} | {"b.pins": format_pins(self.pins)}

    def tree_as_dict(self) -> dict[str, Any]:
        """Return the fields of what the run's tokens are part of: its continuations, and the prompt's messages."""
        return {"branches": format_branches(self.branches), "began": self.began, "chat": self.chat}


def parse_revision(state: Mapping[str, Any]) -> int:
    """Return the revision of an untrusted state; 0 if it is missing or invalid."""
    return parse_index(state.get("turn")) or 0


def save_branch(state: PageState) -> PageState:
    """Return the state with the current continuation saved as a branch."""
    return replace(state, branches=add_or_extend_branch(state.branches, state.run.generated))


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
        branches = add_or_extend_branch(prepend_to_branches(state.branches, rest), rest)
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


def undo_tokens(state: PageState, count: int = 1) -> PageState:
    """Return the state without the last generated tokens, which stay in the tree.

    Raises:
        UserError: there are none.
    """
    if not state.run.generated:
        raise UserError(_("There is nothing to undo: no token was generated yet."))
    path = state.run.generated[: max(0, len(state.run.generated) - count)]
    return replace_continuation(state, path, generation_start=min(state.began, len(path)))


# what the browser names -> what it does; `position` is that of the selected token among all of the run
COMMANDS: dict[str, Callable[[PageState, int, Mapping[str, Any]], PageState]] = {
    "take": lambda state, position, move: replace_next_token(state, position, *parse_token_ids([move.get("token")])),
    "go": lambda state, position, move: go_to_branch(state, parse_token_ids(move.get("path") or ())),
    "undo": lambda state, position, move: undo_tokens(state, move.get("count", 1)),
    "prune": lambda state, position, move: prune_branch(state, parse_token_ids(move.get("path") or ())),
}


def apply_command(state: PageState, position: int, command: Any) -> PageState:
    """Return the state after a command such as {"kind": "take", "token": 812}.

    Raises:
        UserError: the command is invalid.
    """
    if not isinstance(command, Mapping) or command.get("kind") not in list(COMMANDS):
        raise UserError(_("a move is one of {kinds}, got {got!r:.80}", kinds=", ".join(COMMANDS), got=command))
    return COMMANDS[command["kind"]](state, position, command)
