"""The page's state, parsed from the browser's: the run, saved continuations, the conversation, and commands."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from explorer.errors import UserError
from explorer.interventions import SEPARATOR, CrossRunIntervention, Intervention, parse_interventions
from explorer.state.selection import Selection, parse_index
from explorer.state.token_alignment import Pins, format_pins, parse_pins
from explorer.translations import _
from model.config import window_start
from model.errors import ModelError
from model.tokenizer import Message, check_messages

MAX_TOKENS = 2048  # of the prompt and as many after it: their ids still fit into a URL


@dataclass(frozen=True)
class RunRequest:
    """The request for a run: small and hashable, so that state, caches and URLs can hold it instead of the result.

    Attributes:
        checkpoint: name of the model.
        prompt: ids of the prompt's tokens.
        generated: ids of the tokens generated after them.
        dropped: number of tokens before `prompt` that were left out because the model cannot see so many.
        edits: interventions.
    """

    checkpoint: str
    prompt: tuple[int, ...]
    generated: tuple[int, ...] = ()
    dropped: int = 0
    edits: tuple[Intervention, ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "edits", tuple(intervention.for_prompt(self.prompt) for intervention in self.edits))

    @property
    def token_ids(self) -> tuple[int, ...]:
        return self.prompt + self.generated

    def first_visible(self, num_visible: int) -> int:
        """Return the position in the whole text of the first token that the model sees."""
        return self.dropped + len(self.token_ids) - num_visible

    def with_patch_source(self, other: "RunRequest | None", name: str, pins: Pins) -> "RunRequest":
        """Return the run with another run as the source of its patches.

        The source is that run's prompt, without its own patches. None: there is none, and the patches cannot be
        applied. Descriptions call it by its name.
        """
        source = other and replace(other.without_patches(), generated=())
        interventions = (
            replace(e, source=source, source_name=name, pins=pins) if isinstance(e, CrossRunIntervention) else e
            for e in self.edits
        )
        return replace(self, edits=tuple(interventions))

    def without_patches(self) -> "RunRequest":
        """Return the run without patches."""
        return replace(
            self,
            edits=tuple(
                intervention for intervention in self.edits if not isinstance(intervention, CrossRunIntervention)
            ),
        )

    @property
    def patches(self) -> tuple[CrossRunIntervention, ...]:
        """Interventions that take values of another run."""
        return tuple(intervention for intervention in self.edits if isinstance(intervention, CrossRunIntervention))

    def window(self, context_length: int) -> tuple[int, ...]:
        """Return the last tokens, as many as the model sees when it predicts the next."""
        return self.token_ids[window_start(len(self.token_ids), context_length) :]

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> "RunRequest":
        """Parse a run from an untrusted mapping.

        Ids are numbers or text like "12.7.300", interventions a list of texts or one text like
        "rope.angles*shift*5~blocks.2.attn.z.1*zero".

        Raises:
            UserError: the checkpoint, the ids or the interventions are invalid.
        """
        checkpoint = values.get("checkpoint")
        if not isinstance(checkpoint, str):
            raise UserError(_("the checkpoint must be a name, got {got!r}", got=checkpoint))
        prompt, generated = (parse_token_ids(values.get(name) or ()) for name in ("prompt", "generated"))
        dropped = parse_index(values.get("dropped", 0)) or 0
        return cls(checkpoint, prompt, generated, dropped, parse_interventions(values.get("edits") or ()))

    def as_dict(self) -> dict[str, Any]:
        return {
            "checkpoint": self.checkpoint,
            "prompt": list(self.prompt),
            "generated": list(self.generated),
            "dropped": self.dropped,
            "edits": SEPARATOR.join(map(str, self.edits)),
        }


def parse_token_ids(ids: str | Sequence) -> tuple[int, ...]:
    """Parse token ids from a list of whole numbers or from text, joined by dots; raise UserError for anything else."""
    parts = ids.split(".") if isinstance(ids, str) else ids
    if not isinstance(parts, list | tuple) or len(parts) > MAX_TOKENS:
        raise UserError(_("token ids are at most {most} whole numbers", most=MAX_TOKENS))
    numbers = tuple(parse_index(part) for part in parts)
    if None in numbers:
        raise UserError(_("token ids are whole numbers"))
    return numbers


BRANCH_SEPARATOR = "~"  # branches in a text
ORIGINS = ("greedy", "beam", "sampling")  # how a branch can have come about, where that is worth telling
MAX_BRANCHES = 32
MAX_BRANCH_TOKENS = 2 * MAX_TOKENS  # of all branches: with the run's own they still fit into a URL

Path = tuple[int, ...]  # ids of the tokens after the prompt


@dataclass(frozen=True)
class Branch:
    """A saved continuation, in text "12.7.300" or "beam:12.9".

    Attributes:
        path: ids of its tokens.
        origin: one of `ORIGINS`; "" if it was generated or chosen token by token.
    """

    path: Path
    origin: str = ""

    @classmethod
    def parse(cls, text: str) -> "Branch":
        """Parse a branch; UserError for an unknown origin or invalid ids."""
        origin, _colon, ids = text.rpartition(":")
        if origin not in ("", *ORIGINS):
            raise UserError(
                _("a branch comes from {origins}, got {got!r}", origins=", ".join(ORIGINS), got=origin[:80])
            )
        return cls(parse_token_ids(ids), origin)

    def __str__(self) -> str:
        return f"{self.origin}:" * bool(self.origin) + ".".join(map(str, self.path))


Branches = tuple[Branch, ...]  # the oldest first


def parse_branches(text: str) -> Branches:
    """Parse the text of `format_branches`.

    Raises:
        UserError: the text is invalid, or has too many branches.
    """
    if (got := text.count(BRANCH_SEPARATOR) + 1) > MAX_BRANCHES:
        raise UserError(_("a prompt has at most {most} branches, got {got}", most=MAX_BRANCHES, got=got))
    return drop_oldest(tuple(map(Branch.parse, text.split(BRANCH_SEPARATOR)))) if text else ()


def format_branches(branches: Branches) -> str:
    """Format branches as the URL has them."""
    return BRANCH_SEPARATOR.join(map(str, branches))


def drop_oldest(branches: Branches) -> Branches:
    """Return the branches without the oldest beyond the limits."""
    while len(branches) > MAX_BRANCHES or sum(len(branch.path) for branch in branches) > MAX_BRANCH_TOKENS:
        branches = branches[1:]
    return branches


def add_or_extend_branch(branches: Branches, path: Path, origin: str = "") -> Branches:
    """Return the branches with one more, which replaces prefixes of it that have no origin.

    The oldest beyond the limits are dropped.
    """
    new = Branch(path, origin)
    is_present = any(branch.path[: len(path)] == path for branch in branches) if not origin else new in branches
    if is_present or not path:
        return branches
    others = (branch for branch in branches if branch.origin or path[: len(branch.path)] != branch.path)
    return drop_oldest((*others, new))


def prune_branches(branches: Branches, path: Path) -> Branches:
    """Return the branches that do not start with a path."""
    return tuple(branch for branch in branches if branch.path[: len(path)] != path)


def prepend_to_branches(branches: Branches, before: Path) -> Branches:
    """Return the branches of a prompt that ends earlier by the tokens `before`; each starts with these tokens."""
    longer = (Branch(before + shorter.path, shorter.origin) for shorter in branches)
    return drop_oldest(tuple(branch for branch in longer if len(branch.path) <= MAX_TOKENS))


def fork_depth(paths: Iterable[Path], path: Path) -> int:
    """Return the largest number of tokens that a path shares with paths that diverge from it."""
    return max((common_prefix_length(path, other) for other in paths if other[: len(path)] != path), default=0)


def common_prefix_length(a: Path, b: Path) -> int:
    """Return the number of tokens that two paths have in common at their start."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


@dataclass(frozen=True)
class TreeSegment:
    """Consecutive tokens of the tree without a fork.

    Attributes:
        path: from the prompt to its last token.
        start: number of tokens of the path before it.
        parent: index of the segment before it, -1 for the first.
        depth: number of forks before it, without those at the very beginning.
        first: surprisal of its first token, which distinguishes it from its siblings, in bits.
        bits: summed surprisal of its tokens, -log₂ of their probability given all before them.
        total: summed surprisal of the whole path, in bits.
        is_leaf: whether no segment follows.
    """

    path: Path
    start: int
    parent: int
    depth: int
    first: float
    bits: float
    total: float
    is_leaf: bool


def build_tree(surprisals: Mapping[Path, Sequence[float]]) -> list[TreeSegment]:
    """Return the tree of paths as segments, parents before children, likelier siblings first.

    A segment ends where paths diverge, and where one of them ends.

    Args:
        surprisals: for each path the bits of each of its tokens, given the prompt and the tokens before.
    """
    segments: list[TreeSegment] = []

    def grow(paths: list[Path], start: int, parent: int, depth: int):
        groups: dict[int, list[Path]] = {}
        for path in paths:
            if len(path) > start:
                groups.setdefault(path[start], []).append(path)
        depth += start > 0 and len(groups) > 1
        for group in sorted(groups.values(), key=lambda group: surprisals[group[0]][start]):
            first_path, bits = group[0], surprisals[group[0]]
            end = min(common_prefix_length(first_path, other) for other in group)
            index, is_leaf = len(segments), all(len(path) == end for path in group)
            sums = float(bits[start]), float(sum(bits[start:end])), float(sum(bits[:end]))
            segments.append(TreeSegment(first_path[:end], start, parent, depth, *sums, is_leaf))
            grow(group, end, index, depth)

    grow(list(surprisals), 0, -1, 0)
    return segments


MAX_CHAT_CHARACTERS = 20_000  # of the text: a URL has room for as many


def parse_chat(text: Any) -> str:
    """Return the text of messages in its shortest form; "" for anything else."""
    if not isinstance(text, str) or not 0 < len(text) <= MAX_CHAT_CHARACTERS:
        return ""
    try:
        return format_chat(check_messages(json.loads(text)))
    except (ValueError, TypeError, RecursionError, ModelError):
        return ""


def format_chat(messages: Sequence[Message]) -> str:
    """Return messages as text."""
    return json.dumps(messages, ensure_ascii=False, separators=(",", ":"))


def chat_messages(chat: str) -> list[Message]:
    """Return the messages in a text of `parse_chat`; none for ""."""
    return json.loads(chat) if chat else []


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
        object.__setattr__(self, "run", self.run.with_patch_source(self.other, "B", self.pins))
        if self.other:
            reverse_pins = tuple((b, a) for a, b in self.pins)
            object.__setattr__(self, "other", self.other.with_patch_source(self.run, "A", reverse_pins))

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


def apply_command(state: PageState, position: int, command: Mapping[str, Any]) -> PageState:
    """Return the state after a command such as {"kind": "take", "token": 812}.

    Raises:
        UserError: the command is invalid.
    """
    if command.get("kind") not in COMMANDS:
        raise UserError(_("a move is one of {kinds}, got {got!r:.80}", kinds=", ".join(COMMANDS), got=command))
    return COMMANDS[command["kind"]](state, position, command)
