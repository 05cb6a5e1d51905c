"""The tree of continuations."""

from collections.abc import Callable, Sequence
from typing import Any

from explorer.explain.notation import number
from explorer.state.branches import Branches as Kept
from explorer.state.branches import Path, Stretch
from explorer.web.widgets.widget import Widget

HTML = """<h3>Continuations</h3>
<p class="legend">The shaded token's probability, then how likely the whole stretch is. Choose one to go there.</p>
<ul class="tree" aria-label="Continuations of the prompt, as a tree"></ul>
<table class="leaves">
  <caption>Compared</caption>
  <thead><tr>
    <th scope="col">branch</th>
    <th scope="col">tokens</th>
    <th scope="col" title="logarithm of the probability of the whole branch: less the surprisals of its tokens, in bits"
    >log₂ P</th>
    <th scope="col" title="log₂ P divided by the number of tokens">per token</th>
    <th scope="col" title="2 to the power of −log₂ P per token: among how many equally likely tokens each was a choice"
    >perplexity</th>
  </tr></thead>
  <tbody></tbody>
</table>"""


class Branches(Widget):
    """A row a stretch of tokens without a fork, and a table of those where a branch ends.

    A click on a row goes there; its × takes the stretch, and all that follows it, away.
    """

    def __init__(self, **kwargs):
        super().__init__(html=HTML, **kwargs)

    @staticmethod
    def pack(
        stretches: Sequence[Stretch], shown: Path, kept: Kept, text_of: Callable[[int], str]
    ) -> list[dict[str, Any]]:
        """The widget's value.

        Args:
            stretches: the tree, as `explorer.state.branches.tree` makes it.
            shown: the continuation that the page shows.
            kept: branches, for what is known of their origins.
            text_of: a token id's text.
        """
        rows = []
        for stretch in stretches:
            own, length = stretch.path[stretch.start :], len(stretch.path)
            origins = [branch.origin for branch in kept if branch.origin and branch.path == stretch.path]
            rows.append(
                {
                    "ids": list(own),
                    "tokens": [text_of(token_id) for token_id in own],
                    "parent": stretch.parent,
                    "depth": stretch.depth,
                    "probability": 2**-stretch.first,
                    "first": number(2**-stretch.first),
                    "bits": number(-stretch.bits),
                    "each": number(-stretch.bits / len(own)),
                    "length": length,
                    "total": number(-stretch.total),
                    "per_token": number(-stretch.total / length),
                    "perplexity": perplexity(stretch.total / length),
                    "shown": shown[:length] == stretch.path,
                    "here": shown == stretch.path,
                    "compared": stretch.is_leaf or bool(origins),
                    "origins": ", ".join(origins),
                }
            )
        return rows


def perplexity(bits: float) -> str:
    """2^bits, of which a float has room up to 2^1024."""
    return number(2**bits) if bits < 1024 else "over 1e308"
