"""Tree of continuations: the saved continuations of a prompt as branches, and the tree that they form."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from explorer.errors import UserError
from explorer.state.run_request import MAX_TOKENS, parse_token_ids
from explorer.translations import _

SEPARATOR = "~"  # branches in a text
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
    if not isinstance(text, str):
        raise UserError(_("branches are a text such as 12.7.300~beam:12.9, got {got!r:.80}", got=text))
    if (got := text.count(SEPARATOR) + 1) > MAX_BRANCHES:
        raise UserError(_("a prompt has at most {most} branches, got {got}", most=MAX_BRANCHES, got=got))
    return drop_oldest(tuple(map(Branch.parse, text.split(SEPARATOR)))) if text else ()


def format_branches(branches: Branches) -> str:
    """Format branches as the URL has them."""
    return SEPARATOR.join(map(str, branches))


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
