"""The continuations of a prompt: kept side by side, and seen as a tree."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from explorer.language import _
from explorer.state.errors import UserError
from explorer.state.run import MOST_TOKENS, parse_ids

BETWEEN = "~"  # branches in a text
ORIGINS = ("greedy", "beam", "sampling")  # how a branch can have come about, where that is worth telling
MOST_BRANCHES = 32
MOST_BRANCH_TOKENS = 2 * MOST_TOKENS  # of all branches: with the run's own they still fit into a URL

Path = tuple[int, ...]  # ids of the tokens after the prompt


@dataclass(frozen=True)
class Branch:
    """A continuation that is kept, written "12.7.300" or "beam:12.9".

    Attributes:
        path: ids of its tokens.
        origin: one of `ORIGINS`; "" for what was written or taken token by token.
    """

    path: Path
    origin: str = ""

    @classmethod
    def parse(cls, text: str) -> "Branch":
        origin, _colon, ids = text.rpartition(":")
        if origin not in ("", *ORIGINS):
            raise UserError(
                _("a branch comes from {origins}, got {got!r}", origins=", ".join(ORIGINS), got=origin[:80])
            )
        return cls(parse_ids(ids), origin)

    def __str__(self) -> str:
        return f"{self.origin}:" * bool(self.origin) + ".".join(map(str, self.path))


Branches = tuple[Branch, ...]  # the oldest first


def parse_branches(text: str) -> Branches:
    """The branches that `written` wrote; UserError where they are none, or too many."""
    if not isinstance(text, str):
        raise UserError(_("branches are a text such as 12.7.300~beam:12.9, got {got!r:.80}", got=text))
    if (got := text.count(BETWEEN) + 1) > MOST_BRANCHES:
        raise UserError(_("a prompt has at most {most} branches, got {got}", most=MOST_BRANCHES, got=got))
    return within_bounds(tuple(map(Branch.parse, text.split(BETWEEN)))) if text else ()


def written(branches: Branches) -> str:
    return BETWEEN.join(map(str, branches))


def within_bounds(branches: Branches) -> Branches:
    """Without the oldest that are too many."""
    while len(branches) > MOST_BRANCHES or sum(len(branch.path) for branch in branches) > MOST_BRANCH_TOKENS:
        branches = branches[1:]
    return branches


def added(branches: Branches, path: Path, origin: str = "") -> Branches:
    """With one more, in place of its own beginnings of no origin; the oldest go where they are too many."""
    new = Branch(path, origin)
    known = any(kept.path[: len(path)] == path for kept in branches) if not origin else new in branches
    if known or not path:
        return branches
    others = (kept for kept in branches if kept.origin or path[: len(kept.path)] != kept.path)
    return within_bounds((*others, new))


def pruned(branches: Branches, path: Path) -> Branches:
    """Without those that begin with a path."""
    return tuple(kept for kept in branches if kept.path[: len(path)] != path)


def moved(branches: Branches, before: Path) -> Branches:
    """The same continuations of a prompt that ends `before` so many tokens earlier."""
    longer = (Branch(before + kept.path, kept.origin) for kept in branches)
    return within_bounds(tuple(branch for branch in longer if len(branch.path) <= MOST_TOKENS))


def forked_at(paths: Iterable[Path], path: Path) -> int:
    """How many of a path's tokens it shares with others that go another way."""
    return max((shared(path, other) for other in paths if other[: len(path)] != path), default=0)


def shared(a: Path, b: Path) -> int:
    """How many tokens two paths begin with together."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


@dataclass(frozen=True)
class Stretch:
    """Tokens of the tree that follow one another without a fork.

    Attributes:
        path: from the prompt to its last token.
        start: how many tokens of the path come before it.
        parent: index of the stretch before it, -1 of the first.
        depth: forks on the way to it; those at the very beginning do not count.
        first: surprisal of its first token, which tells it from its siblings; bits, as are the following.
        bits: summed surprisal of its tokens: -log₂ of their probability, given all before them.
        total: the same of the whole path.
        is_leaf: whether nothing goes on from here.
    """

    path: Path
    start: int
    parent: int
    depth: int
    first: float
    bits: float
    total: float
    is_leaf: bool


def tree(surprisals: Mapping[Path, Sequence[float]]) -> list[Stretch]:
    """Paths as stretches, each before those that go on from it; of siblings the likelier first.

    A stretch ends where paths part, and where one of them ends.

    Args:
        surprisals: of each path the bits of each of its tokens, given the prompt and the tokens before.
    """
    stretches: list[Stretch] = []

    def grow(paths: list[Path], start: int, parent: int, depth: int):
        ways: dict[int, list[Path]] = {}
        for path in paths:
            if len(path) > start:
                ways.setdefault(path[start], []).append(path)
        depth += start > 0 and len(ways) > 1
        for way in sorted(ways.values(), key=lambda way: surprisals[way[0]][start]):
            one, bits = way[0], surprisals[way[0]]
            end = min(shared(one, other) for other in way)
            index, is_leaf = len(stretches), all(len(path) == end for path in way)
            sums = float(bits[start]), float(sum(bits[start:end])), float(sum(bits[:end]))
            stretches.append(Stretch(one[:end], start, parent, depth, *sums, is_leaf))
            grow(way, end, index, depth)

    grow(list(surprisals), 0, -1, 0)
    return stretches
