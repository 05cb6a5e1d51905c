"""Tokens step of the story: the tokens that the model reads, and how well it predicted each."""

import numpy as np

from explorer.analysis.next_token import actual_token_probability, surprisal
from explorer.explain.clicked_point import ClickedPoint
from explorer.explain.derivation import Derivation
from explorer.explain.notation import quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext
from explorer.views import graph_objects as go
from explorer.views.plots import format_percent, token_bars
from explorer.views.verification import verify_derived
from explorer.views.view import Panel, View


def token_probabilities(trace: Trace) -> np.ndarray:
    """Return the probability that the model gave each token but the first, (T − 1,)."""
    return 2 ** -surprisal(trace)[1:]


def draw(trace: Trace, query: int) -> go.Figure:
    """Draw how likely the model found each token of the text."""
    return token_bars(
        trace,
        token_probabilities(trace),
        query,
        _("how likely the model found it"),
        _(
            "How likely the model found each of {tokens} tokens before it read it. {least}",
            tokens=len(trace),
            least=least_expected_text(trace),
        ),
        first=1,
    )


def least_expected_text(trace: Trace) -> str:
    """Return a sentence on the token with the least probability."""
    if len(trace) < 2:
        return _("Nothing comes before the first token.")
    probabilities = token_probabilities(trace)
    if np.isnan(probabilities).any():
        return _("Not all of its guesses are numbers.")
    lowest_index = int(probabilities.argmin())
    return _(
        "It expected {token} least: {share}.",
        token=quote_token(trace.tokens[lowest_index + 1]),
        share=format_percent(float(probabilities[lowest_index])),
    )


def formula(trace: Trace, selection: Selection) -> str:
    """Return sentences on the number of tokens and the vocabulary."""
    config = trace.config
    tokens = ngettext("Your text is {count} token.", "Your text is {count} tokens.", len(trace))
    numbers = _(
        "The model knows {known:,} different ones; it reads each as a list of {numbers:,} numbers.",
        known=config.vocab_size,
        numbers=config.d_model,
    )
    return "\n".join([f"{tokens} {numbers}", least_expected_text(trace)])


def inspect(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation | None:
    """Derive the clicked token's probability; None for the first, which nothing predicts."""
    position = point.column
    return actual_token_probability(trace, position - 1) if position else None


VIEW = View(
    name="pieces",
    title=N_("1 · Words to tokens"),
    group="story",
    order=10,
    description=N_(
        "The model reads tokens, often a word with its space. At each it guesses the next: the taller the bar, the "
        "better it guessed."
    ),
    formula=formula,
    required_taps=("logits",),
    unavailable_message=lambda config: _("What this model expected was not captured."),
    panels=(
        Panel(
            name="expected",
            title=N_("Which words did it see coming?"),
            draw=lambda trace, s: draw(trace, s.query),
            click_selects={"x": "query"},
            verify=verify_derived("logits"),
            inspect=inspect,
            height=420,
        ),
    ),
    numbers_view_link=lambda trace, s: (_("All about its tokens"), {"view": "tokens"}),
)
