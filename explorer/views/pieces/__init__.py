"""Words to tokens: what the model reads, and what of it it saw coming. The simple page's first step."""

import numpy as np

from explorer.analysis.next_token import surprisal
from explorer.explain.analysed.prediction import probability_of_actual
from explorer.explain.derivation import Derivation
from explorer.explain.notation import quoted
from explorer.explain.point import Point
from explorer.language import N_, _, ngettext
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.checks import worked_out
from explorer.views.token_bars import percent, token_bars
from explorer.views.view import Panel, View


def chances(trace: Trace) -> np.ndarray:
    """(T − 1,) the probability the model gave each token but the first, which nothing precedes, before it read it."""
    return 2 ** -surprisal(trace)[1:]


def expected(trace: Trace, query: int) -> go.Figure:
    return token_bars(
        trace,
        chances(trace),
        query,
        _("how likely the model found it"),
        _(
            "How likely the model found each of {tokens} tokens before it read it. {least}",
            tokens=len(trace),
            least=least_expected(trace),
        ),
        first=1,
    )


def least_expected(trace: Trace) -> str:
    if len(trace) < 2:
        return _("Nothing comes before the first token.")
    given = chances(trace)
    if np.isnan(given).any():
        return _("Not all of its guesses are numbers.")
    least = int(given.argmin())
    return _(
        "It expected {token} least: {share}.", token=quoted(trace.tokens[least + 1]), share=percent(float(given[least]))
    )


def formula(trace: Trace, selection: Selection) -> str:
    config = trace.config
    tokens = ngettext("Your text is {count} token.", "Your text is {count} tokens.", len(trace))
    numbers = _(
        "The model knows {known:,} different ones; it reads each as a list of {numbers:,} numbers.",
        known=config.vocab_size,
        numbers=config.d_model,
    )
    return "\n".join([f"{tokens} {numbers}", least_expected(trace)])


def inspect(trace: Trace, selection: Selection, point: Point) -> Derivation | None:
    position = point.column
    return probability_of_actual(trace, position - 1) if position else None


VIEW = View(
    name="pieces",
    title=N_("1 · Tokens"),
    words=N_(
        "The model reads no letters: it cuts the text into tokens, often a word with the space before it. As it reads, "
        "it guesses at every place what comes next. The taller the bar, the better it saw that token coming."
    ),
    formula=formula,
    needs=("logits",),
    otherwise=lambda config: _("What this model expected was not captured."),
    panels=(
        Panel(
            name="expected",
            title=N_("Which words did it see coming?"),
            draw=lambda trace, s: expected(trace, s.query),
            selects={"x": "query"},
            mark=worked_out("logits"),
            inspect=inspect,
            height=300,
        ),
    ),
    in_full=lambda trace, s: (_("All about its tokens"), {"view": "tokens"}),
)
