"""The tree of continuations."""

from collections.abc import Callable, Sequence
from typing import Any

from explorer.explain.notation import number
from explorer.language import N_, _, look_up
from explorer.state.branches import Branches as Kept
from explorer.state.branches import Path, Stretch
from explorer.web.widgets.widget import Widget, with_words


def template() -> str:
    return with_words(
        """<h3>{heading}</h3>
<p class="legend">{legend}</p>
<ul class="tree" aria-label="{tree}"></ul>
<table class="leaves">
  <caption>{compared}</caption>
  <thead><tr>
    <th scope="col">{branch}</th>
    <th scope="col">{tokens}</th>
    <th scope="col" title="{log_is}">{log}</th>
    <th scope="col" title="{each_is}">{each}</th>
    <th scope="col" title="{perplexity_is}">{perplexity}</th>
  </tr></thead>
  <tbody></tbody>
</table>""",
        heading=_("Continuations"),
        legend=_("The shaded token's probability, then how likely the whole stretch is. Choose one to go there."),
        tree=_("Continuations of the prompt, as a tree"),
        compared=_("Compared"),
        branch=_("branch"),
        tokens=_("tokens"),
        log=_("log₂ P"),
        log_is=_("logarithm of the probability of the whole branch: less the surprisals of its tokens, in bits"),
        each=_("per token"),
        each_is=_("log₂ P divided by the number of tokens"),
        perplexity=_("perplexity"),
        perplexity_is=_("2 to the power of −log₂ P per token: among how many equally likely tokens each was a choice"),
    )


# how a branch came about -> in words
ORIGINS = {"greedy": N_("greedy"), "beam": N_("beam"), "sampling": N_("sampling")}


class Branches(Widget):
    """A row a stretch of tokens without a fork, and a table of those where a branch ends.

    A click on a row goes there; its × takes the stretch, and all that follows it, away.
    """

    def __init__(self, **kwargs):
        super().__init__(html=template(), **kwargs)

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
                    "origins": ", ".join(look_up(ORIGINS[origin]) for origin in origins),
                }
            )
        return rows


def perplexity(bits: float) -> str:
    """2^bits, of which a float has room up to 2^1024."""
    return number(2**bits) if bits < 1024 else _("over 1e308")
