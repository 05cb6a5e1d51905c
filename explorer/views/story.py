"""Story views: four steps in everyday words, from words to tokens, attention, the guess by layer, and choosing."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.logit_lens import lens_cell, lens_summaries
from explorer.analysis.next_token import (
    actual_token_probability,
    next_token_distribution,
    next_token_ranking,
    surprisal,
)
from explorer.analysis.token_contributions import attribution_by_source, largest_earlier_source
from explorer.architecture.residual_stream import block_lens_points
from explorer.explain.captured import derive
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import format_percent, quote_word, quote_word_in_text
from explorer.state.generation_settings import MAX_SLIDER_TOP_K
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext
from explorer.views import graph_objects as go
from explorer.views.labels import PARTS, SUM_CHECK
from explorer.views.shared_plots import QUIET, TRACK, token_bars
from explorer.views.style import (
    ATTENTION,
    EMBEDDING,
    MONO,
    NORM,
    ORANGE,
    RESIDUAL,
    SELECTED,
    figure,
    label,
    note_above,
)
from explorer.views.verification import VERIFY_LENS, Verification, verify_captured, verify_derived
from explorer.views.view import Panel, View


def token_probabilities(trace: Trace) -> np.ndarray:
    """Return the probability that the model gave each token but the first, (T − 1,)."""
    return 2 ** -surprisal(trace)[1:]


def draw_token_probabilities(trace: Trace, query: int) -> go.Figure:
    """Draw how likely the model found each token of the text."""
    return token_bars(
        trace,
        token_probabilities(trace),
        _("the model’s chance of each token"),
        _(
            "How likely the model found each of {tokens} tokens before it read it. {least}",
            tokens=len(trace),
            least=least_expected_text(trace),
        ),
        first=1,
        query=query,
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
        "It expected {token} least, with a chance of {share}.",
        token=quote_word_in_text(trace.tokens, lowest_index + 1),
        share=format_percent(float(probabilities[lowest_index])),
    )


def describe_tokens(trace: Trace, selection: Selection) -> str:
    """Return sentences on the number of tokens and the vocabulary."""
    config = trace.config
    tokens = ngettext("The text so far is {count} token.", "The text so far is {count} tokens.", len(trace))
    numbers = _(
        "The model knows {known:,} different ones; it reads each as a list of {numbers:,} numbers.",
        known=config.vocab_size,
        numbers=config.d_model,
    )
    return "\n".join([f"{tokens} {numbers}", least_expected_text(trace)])


def describe_generated_count(num_tokens: int, num_generated: int) -> str:
    """Return how many tokens are the user's, and how many the model's."""
    yours = num_tokens - num_generated
    return ngettext(
        "Yours: {count} token; the model’s: {written}.",
        "Yours: {count} tokens; the model’s: {written}.",
        yours,
        written=num_generated,
    )


def inspect_token_probability(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation | None:
    """Derive the clicked token's probability; None for the first, which nothing predicts."""
    position = point.column
    return actual_token_probability(trace, position - 1) if position else None


TOKENS_STEP = View(
    name="pieces",
    title=N_("1 · Words to tokens"),
    group="story",
    order=10,
    deeper_views=("tokens",),
    description=N_(
        "The model reads tokens: often a word with its space (·), or a new line (↵). A tall bar is a token that it "
        "expected."
    ),
    formula=describe_tokens,
    generated_note=describe_generated_count,
    required_taps=("logits",),
    unavailable_message=lambda config: _("What this model expected was not captured."),
    panels=(
        Panel(
            name="expected",
            title=N_("Which words did it see coming?"),
            draw=lambda trace, s: draw_token_probabilities(trace, s.query),
            click_selects={"x": "query"},
            verify=verify_derived("logits"),
            inspect=inspect_token_probability,
            height=420,
        ),
    ),
    numbers_view_link=lambda trace, s: (_("all about its tokens"), {"view": "tokens"}),
)


PATTERN = "blocks.{layer}.attn.pattern"
MAX_NAMED_TOKENS = 3  # tokens that it looks at
MIN_NAMED_WEIGHT = 0.05  # of its attention


def largest_look_back(trace: Trace, query: int) -> tuple[int, int, int | None]:
    """Return layer, head and key of the largest contribution from an earlier token to the likeliest next token's logit.

    As the whole model's sentence has it. Where no earlier token adds to the logit: the head that adds most, and None.
    """
    token_id = int(next_token_ranking(trace, query)[0])
    if source := largest_earlier_source(attribution_by_source(trace, query, token_id), query):
        return source
    heads = direct_logit_attribution(trace, query, token_id).heads  # (L, H)
    layer, head = np.unravel_index(heads.argmax(), heads.shape)
    return int(layer), int(head), None


def top_head_weights(trace: Trace, query: int) -> np.ndarray:
    """Return the top contributing head's attention from the query to each token up to it, (query + 1,).

    The weights sum to 1.
    """
    layer, head, _key = largest_look_back(trace, query)
    return trace[PATTERN.format(layer=layer)][head, query, : query + 1]


def draw_top_head_attention(trace: Trace, query: int) -> go.Figure:
    """Draw the attention weights of the head whose look back adds most, which is highlighted."""
    layer, head, key = largest_look_back(trace, query)
    weights = top_head_weights(trace, query)
    alt = _(
        "Where layer {layer} head {head} looks from {token}.", layer=layer, head=head, token=token_label(trace, query)
    )
    return token_bars(
        trace,
        weights,
        _("the head’s attention, seen from {token}", token=f"“{label(trace.tokens[query])}”"),
        f"{alt} {strongest_attention_text(trace, query)}",
        query=query,
        strongest=int(weights.argmax()) if key is None else key,
    )


def token_label(trace: Trace, position: int) -> str:
    """Return the token at a position in quotes."""
    return quote_word(trace.tokens[position])


def strongest_attention_text(trace: Trace, query: int) -> str:
    """Describe, in a sentence, the tokens that the top contributing head attends to most."""
    weights = top_head_weights(trace, query)
    top_positions = [
        int(i) for i in np.argsort(-weights, kind="stable")[:MAX_NAMED_TOKENS] if weights[i] >= MIN_NAMED_WEIGHT
    ]
    phrases = []
    for i in top_positions:
        token, share = quote_word_in_text(trace.tokens, i), format_percent(float(weights[i]))
        if i == top_positions[0]:
            phrase = _("at itself, {token} ({share})") if i == query else _("at {token} ({share})")
        else:
            phrase = _("then at itself, {token} ({share})") if i == query else _("then at {token} ({share})")
        phrases.append(phrase.format(token=token, share=share))
    if not top_positions:
        return _("The head looks a little at many tokens, at none with a twentieth of its attention.")
    return _("The head looks most {places}.", places=", ".join(phrases))


def top_head_heading(trace: Trace, selection: Selection) -> str:
    """Return the figure's title, with the head that it shows."""
    layer, head, _key = largest_look_back(trace, selection.query)
    return _("Who looks at whom? Layer {layer} head {head}", layer=layer, head=head)


def describe_top_head(trace: Trace, selection: Selection) -> str:
    """Return a sentence on the look back that adds most, and one on where its head looks most."""
    layer, head, key = largest_look_back(trace, selection.query)
    guess_text = _(
        "After {token} the model expects {guess}.",
        token=token_label(trace, selection.query),
        guess=quote_word(trace.vocabulary[next_token_ranking(trace, selection.query)[0]]),
    )
    if key is None:
        look_text = _("Of the heads, layer {layer} head {head} adds most to its score.", layer=layer, head=head)
    else:
        look_text = _(
            "The look back that adds most to its score: layer {layer} head {head} at {key}.",
            layer=layer,
            head=head,
            key=quote_word_in_text(trace.tokens, key),
        )
    return f"{guess_text} {look_text}\n{strongest_attention_text(trace, selection.query)}"


def verify_top_head(trace: Trace, selection: Selection) -> Verification:
    """Verify the drawn pattern and the attribution by which the head is chosen."""
    layer, _head, _key = largest_look_back(trace, selection.query)
    pattern_verification = verify_captured(PATTERN.format(layer=layer))(trace, selection)
    head_verification = verify_derived(*PARTS, "logits", against=SUM_CHECK)(trace, selection)
    return head_verification if head_verification.state == "off" else pattern_verification


def inspect_top_head_weight(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked attention weight."""
    key = get_item(range(selection.query + 1), point.column)
    layer, head, _key = largest_look_back(trace, selection.query)
    return derive(trace, PATTERN.format(layer=layer), (head, selection.query, key))


def link_to_top_head(trace: Trace, selection: Selection) -> tuple[str, dict]:
    """Return the link to all heads, with that head and the key that it looks at most selected."""
    layer, head, _key = largest_look_back(trace, selection.query)
    key = int(top_head_weights(trace, selection.query).argmax())
    look = {"view": "attention", "layer": layer, "head": head, "key": key, "pattern": "weight"}
    return _("all heads of all layers"), look


ATTENTION_STEP = View(
    name="looks",
    title=N_("2 · Who looks at whom"),
    group="story",
    order=20,
    deeper_views=("attention", "positions"),
    description=N_(
        "An attention head looks back and takes from earlier tokens. The bars show how it shares its attention."
    ),
    formula=describe_top_head,
    required_taps=(
        *(
            "embed",
            "blocks.*.attn.pattern",
            "blocks.*.attn.v",
            "blocks.*.attn.z",
            "blocks.*.ffn.out",
            "blocks.*.resid_post",
            "logits",
        ),
        "lm_head.weight",
    ),
    unavailable_message=lambda config: _("This model has no attention."),
    panels=(
        Panel(
            name="weights",
            title=N_("Who looks at whom?"),
            heading=top_head_heading,
            draw=lambda trace, s: draw_top_head_attention(trace, s.query),
            click_selects={"x": "key"},
            verify=verify_top_head,
            inspect=inspect_top_head_weight,
            height=420,
        ),
    ),
    numbers_view_link=link_to_top_head,
)


MAX_NAMED_GUESSES = 3  # guesses
LONG_BAR = 0.6  # of the axis: its text has no room beyond it
MAX_ROOMY_LAYERS = 20  # bars that have room for larger letters


def top_token_by_layer(trace: Trace, query: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the most probable next token before the first layer and after each layer.

    Ids and probabilities, (L + 1,) each, by the logit lens.
    """
    summaries = lens_summaries(trace, range(query, query + 1))
    depths_per_layer = len(block_lens_points(trace.config))  # the lens may also read between a layer's two parts
    return summaries.top[::depths_per_layer, 0, 0], summaries.probabilities[::depths_per_layer, 0, 0]


def layer_labels(trace: Trace) -> list[str]:
    """Return the labels of the depths: no layer, then each layer."""
    return [_("no layer"), *(_("layer {layer}", layer=layer) for layer in range(trace.config.num_layers))]


def draw_guess_by_layer(trace: Trace, query: int) -> go.Figure:
    """Draw the likeliest next token after each layer."""
    ids, shares = top_token_by_layer(trace, query)
    tokens = [label(trace.vocabulary[token_id]) for token_id in ids]
    names = layer_labels(trace)
    texts = [f"\u00a0{token} {format_percent(float(share))}\u00a0" for token, share in zip(tokens, shares, strict=True)]
    sides = ["inside" if share > LONG_BAR else "outside" for share in shares.tolist()]
    final = (ids == ids[-1]).tolist()

    def draw_bars(has_bar: Sequence[bool], **marker: str) -> go.Bar:
        return go.Bar(
            y=names,
            x=np.where(has_bar, shares, np.nan),
            orientation="h",
            marker=marker,
            text=[text if is_drawn else "" for text, is_drawn in zip(texts, has_bar, strict=True)],
            textposition=sides,
            textangle=0,
            constraintext="none",
            textfont={"family": MONO, "size": 13 if len(names) <= MAX_ROOMY_LAYERS else 10},
            cliponaxis=False,
            hovertext=tokens,
            hovertemplate="%{y}<br>%{hovertext} %{x:.2%}<extra></extra>",
        )

    tracks = go.Bar(y=names, x=np.ones(len(names)), orientation="h", marker={"color": TRACK}, hoverinfo="skip")
    return figure(
        [tracks, draw_bars([not is_final for is_final in final], color=QUIET), draw_bars(final)],
        alt=_(
            "The likeliest next token if the model stopped early: before any layer {first}, after all {last}.",
            first=quote_word(trace.vocabulary[ids[0]]),
            last=quote_word(trace.vocabulary[ids[-1]]),
        ),
        yaxis={
            "type": "category",
            "showgrid": False,
            "autorange": "reversed",
            "ticksuffix": "  ",
            "tickfont": {"size": 12},
        },
        xaxis={"range": [0, 1], "visible": False},
        annotations=note_above(_("best guess if the model stopped after this layer")),
        bargap=0.4,
        barmode="overlay",
        showlegend=False,
    )


def describe_next_token(trace: Trace, selection: Selection) -> str:
    """Return a sentence on the likeliest next tokens."""
    query = selection.query
    prediction = next_token_distribution(trace, query)
    shares = prediction.plain
    guesses = ", ".join(
        f"{quote_word(trace.vocabulary[token_id])} {format_percent(float(shares[token_id]))}"
        for token_id in prediction.top(MAX_NAMED_GUESSES)
    )
    guesses_text = _(
        "After {token} the model’s own chances are {guesses}.",
        token=quote_word(trace.tokens[query]),
        guesses=guesses,
    )
    return f"{guesses_text}\n{settled_layer_text(trace, query)}"


def settled_layer_text(trace: Trace, query: int) -> str:
    """Describe from which layer on the final guess is the most probable token."""
    ids, _shares = top_token_by_layer(trace, query)
    last = quote_word(trace.vocabulary[ids[-1]])
    repeats = ""
    if ids[0] == trace.token_ids[query] != ids[-1]:
        repeats = _("At first it only repeats {token}.", token=quote_word(trace.tokens[query]))
    others = np.flatnonzero(ids != ids[-1])
    settled = int(others[-1]) + 1 if len(others) else 0
    if settled == 0:
        return _("{token} is likeliest from the beginning, before any layer has worked.", token=last)
    if (ids[:settled] == ids[-1]).any():  # and was not in between
        first = _("{token} becomes the likeliest again in layer {layer}", token=last, layer=settled - 1)
    else:
        first = _("{token} becomes the likeliest in layer {layer}", token=last, layer=settled - 1)
    if settled == trace.config.num_layers:
        settles = _("{first}, the last one.", first=first)
    else:
        settles = _("{first}, and stays first to the end.", first=first)
    return " ".join(filter(None, (repeats, settles)))


def inspect_guess(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked probability after a layer."""
    depth = len(block_lens_points(trace.config)) * get_item(
        range(trace.config.num_layers + 1), point.coordinate("item")
    )
    return lens_cell(trace, depth, selection.query, 0, "probability")


PREDICTION_STEP = View(
    name="guesses",
    title=N_("3 · What each step adds"),
    group="story",
    order=30,
    deeper_views=("prediction", "residual", "feed_forward"),
    description=N_(
        "Each layer adds what it found. The bars show the best guess after each layer; the first bar is before any "
        "layer."
    ),
    formula=describe_next_token,
    required_taps=("blocks.*.resid_post", "logits", "lm_head.weight"),
    unavailable_message=lambda config: _("Too little was captured of this model to follow its prediction."),
    panels=(
        Panel(
            name="layers",
            title=N_("How does the guess come about?"),
            draw=lambda trace, s: draw_guess_by_layer(trace, s.query),
            verify=VERIFY_LENS,
            inspect=inspect_guess,
            height=420,
        ),
    ),
    numbers_view_link=lambda trace, s: (_("all depths, and what each part adds"), {"view": "prediction"}),
)


NUM_TEMPERATURE_LINES = 5  # the likeliest, each a line
TEMPERATURES = np.concatenate([np.linspace(0, 0.29, 30), np.linspace(0.3, 2, 35)])  # more where the curves bend
LINE_COLOURS = (ATTENTION, ORANGE, EMBEDDING, NORM, RESIDUAL)  # told apart by the colour-blind, too


def probabilities_by_temperature(logits: np.ndarray, temperatures: np.ndarray) -> np.ndarray:
    """Return softmax(logits / T) for each temperature T, (N, V) float64; at 0 the largest logit has it all."""
    above_zero = np.where(temperatures > 0, temperatures, 1)[:, None]
    weights = np.exp((logits.astype(np.float64) - logits.max()) / above_zero)  # (N, V)
    weights[temperatures == 0] = np.arange(len(logits)) == logits.argmax()
    return weights / weights.sum(axis=-1, keepdims=True)


def draw_probabilities_by_temperature(trace: Trace, query: int) -> go.Figure:
    """Draw the likeliest tokens' probabilities over the temperature."""
    ids = next_token_distribution(trace, query).top(NUM_TEMPERATURE_LINES)
    logits = trace.logits.row(query)
    shares = probabilities_by_temperature(logits, TEMPERATURES)[:, ids]  # (N, 5)
    first = quote_word(trace.vocabulary[ids[0]])
    return figure(
        [
            go.Scatter(
                x=TEMPERATURES,
                y=shares[:, i],
                mode="lines",
                name=label(trace.vocabulary[token_id]),
                line={"color": colour, "width": 2.5},
                hovertemplate="%{fullData.name}<br>%{x:.2f}: %{y:.1%}<extra></extra>",
            )
            for i, (token_id, colour) in enumerate(zip(ids, LINE_COLOURS, strict=False))
        ],
        alt=_(
            "Probabilities of the {count} likeliest next tokens by temperature, all tokens kept: {token} falls "
            "from {cold} at {low:.2g} to {hot} at {high:.2g}.",
            count=len(ids),
            token=first,
            cold=format_percent(float(shares[0, 0])),
            low=TEMPERATURES[0],
            hot=format_percent(float(shares[-1, 0])),
            high=TEMPERATURES[-1],
        ),
        xaxis={
            "title": {"text": _("← sure · temperature · daring →")},
            "range": [-0.02, 2.02],
            "dtick": 0.5,
            "showgrid": False,
            "tickfont": {"size": 12},
        },
        yaxis={
            "range": [0, 1.02],
            "tickformat": ".0%",
            "dtick": 0.25,
            "tickfont": {"size": 12},
            "title": {"text": _("probability, all tokens kept")},
        },
    ).set_meta(
        setting_line={"setting": "temperature", "color": SELECTED},
        top_k={  # so that the lines follow the slider
            "temperatures": TEMPERATURES.tolist(),
            "scores": [float(score) for score in np.sort(logits)[::-1][:MAX_SLIDER_TOP_K]],
            "alt": _(
                "Probabilities of the {count} likeliest next tokens by temperature, of those that top-k keeps.",
                count=len(ids),
            ),
        },
    )


def describe_temperature_effect(trace: Trace, selection: Selection) -> str:
    """Return a sentence on the likeliest token at a low and a high temperature."""
    query = selection.query
    (best,) = next_token_distribution(trace, query).top(1)
    cold, even, hot = probabilities_by_temperature(trace.logits.row(query), np.array([0.5, 1, 1.5]))[:, best]
    shares = _(
        "{token}: {cold} at temperature 0.5, {even} at 1, {hot} at 1.5, with all tokens kept.",
        token=quote_word(trace.vocabulary[best]),
        cold=format_percent(float(cold)),
        even=format_percent(float(even)),
        hot=format_percent(float(hot)),
    )
    list_note = _("Top-k keeps only the likeliest tokens; their chances grow.")
    return f"{shares}\n{list_note}"


CHOOSING_STEP = View(
    name="choosing",
    title=N_("4 · Choosing"),
    group="story",
    order=40,
    deeper_views=("prediction",),
    description=N_(
        "At temperature 0 the likeliest token is taken; above, a random number picks. Drag temperature: low is sure, "
        "high is daring. Then press Step."
    ),
    formula=describe_temperature_effect,
    required_taps=("logits",),
    panels=(
        Panel(
            name="temperature",
            title=N_("What does temperature do?"),
            draw=lambda trace, s: draw_probabilities_by_temperature(trace, s.query),
            verify=verify_captured("logits"),
            no_inspection=N_("Each line is softmax(logits ÷ temperature); the bars of the list show one temperature."),
            height=400,
        ),
    ),
    numbers_view_link=lambda trace, s: (
        _("all stages of sampling"),
        {"view": "prediction"},
        "stages",
    ),
)


VIEWS = (TOKENS_STEP, ATTENTION_STEP, PREDICTION_STEP, CHOOSING_STEP)
