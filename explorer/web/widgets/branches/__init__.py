"""The tree of continuations."""

from collections.abc import Callable, Sequence
from typing import Any

from explorer.explain.notation import format_number
from explorer.state.branches import Branches as SavedBranches
from explorer.state.branches import Path, TreeSegment
from explorer.translations import N_, _, translate
from explorer.web.widgets.widget import Widget, fill_template


def html_template() -> str:
    return fill_template(
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


class ContinuationTree(Widget):
    """The tree of continuations: a row per segment of tokens without a fork, and a table of the branches' ends.

    A click on a row goes there; its × deletes the segment and all that follow it.
    """

    def __init__(self, **kwargs):
        super().__init__(html=html_template(), **kwargs)

    @staticmethod
    def pack(
        segments: Sequence[TreeSegment], visible_path: Path, branches: SavedBranches, token_text: Callable[[int], str]
    ) -> list[dict[str, Any]]:
        """Return the widget's value.

        Args:
            segments: the tree (`explorer.state.branches.build_tree`).
            visible_path: the continuation that the page shows.
            branches: with their origins.
            token_text: returns a token id's text.
        """
        rows = []
        for segment in segments:
            token_ids, length = segment.path[segment.start :], len(segment.path)
            origins = [branch.origin for branch in branches if branch.origin and branch.path == segment.path]
            rows.append(
                {
                    "ids": list(token_ids),
                    "tokens": [token_text(token_id) for token_id in token_ids],
                    "parent": segment.parent,
                    "depth": segment.depth,
                    "probability": 2**-segment.first,
                    "first": format_number(2**-segment.first),
                    "bits": format_number(-segment.bits),
                    "each": format_number(-segment.bits / len(token_ids)),
                    "length": length,
                    "total": format_number(-segment.total),
                    "per_token": format_number(-segment.total / length),
                    "perplexity": format_perplexity(segment.total / length),
                    "shown": visible_path[:length] == segment.path,
                    "here": visible_path == segment.path,
                    "compared": segment.is_leaf or bool(origins),
                    "origins": ", ".join(translate(ORIGINS[origin]) for origin in origins),
                }
            )
        return rows


def format_perplexity(bits: float) -> str:
    """Format 2^bits; above 2^1024 a float overflows."""
    return format_number(2**bits) if bits < 1024 else _("over 1e308")
