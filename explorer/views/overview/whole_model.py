"""The whole model at one token: what every part takes from where, and adds to the answer's logit."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from explorer.analysis.attention import attention_cell, query_key_vectors
from explorer.analysis.direct_logit_attribution import (
    changed_head_mask,
    check_component_sum,
    direct_logit_attribution,
    has_intervention_additions,
)
from explorer.analysis.logit_lens import depth_names, lens_summaries
from explorer.analysis.next_token import next_token_distribution, token_rank
from explorer.analysis.token_contributions import (
    AttributionBySource,
    attribution_by_source,
    largest_earlier_source,
)
from explorer.architecture.formulas import (
    has_logit_bias_terms,
    logit_bias_terms_short_label,
    score_divisor_formula,
    score_divisor_in_numbers,
)
from explorer.architecture.residual_stream import block_output_tap
from explorer.explain.derivation import RecomputationCheck
from explorer.explain.notation import (
    format_contribution,
    format_number,
    format_percent,
    format_six_digits,
    quote_token,
    quote_token_in_text,
    quote_word,
    quote_word_in_text,
)
from explorer.state.selection import Selection, SelectionField
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views.labels import NORMS, PARTS, logit_label, score_inputs_text, target_and_contrast
from explorer.views.style import shorten_token
from explorer.views.verification import Verification, verify_derived
from model.config import ModelConfig


def fold_tokens(importance: np.ndarray, required: Collection[int], max_rows: int) -> list[range]:
    """Return ranges of positions that cover a text in order: single tokens, and folds of the others.

    Args:
        importance: (T,), of each token; the most important ones are single, as far as there are rows.
        required: positions that are single in any case.
        max_rows: number of rows, at least three more than twice the required positions.
    """
    total = len(importance)
    if total <= max_rows:
        return [range(i, i + 1) for i in range(total)]
    single = set(required)
    for position in np.argsort(-importance, kind="stable").tolist():
        if position not in single and len(make_rows(single | {position}, total)) <= max_rows:
            single.add(position)
    return make_rows(single, total)


def make_rows(single: Collection[int], total: int) -> list[range]:
    """Return a row for each single position, and one for each stretch between them."""
    rows, start = [], 0
    for position in [*sorted(single), total]:
        if start < position:
            rows.append(range(start, position))
        if position < total:
            rows.append(range(position, position + 1))
        start = position + 1
    return rows


LEVELS = ("", "block", "head", "cell")
OPEN_FIELD = SelectionField("open", "", values=LEVELS)  # what is open: of the layer, the head, and the query and key
MAX_ROWS = 18
MIN_SHARE = 0.06  # of the widest curve's norm, or of the largest effect: thinner curves are not drawn
MAX_CURVES = 200


@dataclass(frozen=True)
class WholeModelFigure:
    """Content of the figure, as JSON has it: numbers are None where they are not finite.

    Attributes:
        alt: the figure in a sentence.
        key: the selected key.
        answer: the explained token; `rank` and `probability` are the model's own.
        contrast: the token whose logit is subtracted; "" for none.
        logit: the explained logit or difference.
        norm: of the stream before the first block.
        rows: first and last position of a token, or of a fold of tokens, and its text.
        blocks: for each block `guess`, the likeliest token after it, with its `probability`; `norm` of the stream after
            it; and contributions to the logit, of `heads` and `feed_forward`.
        curves: vectors that heads write from keys, the widest first: layer, head, key, norm ‖weight × W_O v‖₂,
            contribution to the logit, and weight.
        largest_norm, largest_effect: of all curves; what is drawn is in proportion to them.
        rest: number of curves that are not drawn, and the sum of their effects.
        terms: they add up to the logit: kind, which sets the colour, label and value.
        key_groups: number of heads that share keys and values.
        open: None if all blocks are closed; otherwise `level` ("block", "head" or "cell"), `layer`, `head`, `patterns`
            and `cell`. For each head and row, `patterns` has the weights of the columns up to it: none in a fold's
            row, sums in a fold's column. An open cell has `query` and `key` by dimension, and the `steps` from their
            product to a contribution, each with `kind`, `name` and `value`.
    """

    alt: str
    query: int
    key: int
    answer: str
    rank: int
    probability: float | None
    contrast: str
    logit: float | None
    norm: float | None
    rows: list[list]
    blocks: list[dict[str, Any]]
    curves: list[list]
    largest_norm: float
    largest_effect: float
    rest: list[float | None]
    terms: list[list]
    key_groups: int
    open: dict[str, Any] | None


def draw_whole_model(trace: Trace, selection: Selection) -> WholeModelFigure:
    """Return the whole model at the query, with what is open."""
    query, config = selection.query, trace.config
    token_id, contrast_id = tokens = target_and_contrast(trace, selection)
    sources, attribution = attribution_by_source(trace, query, *tokens), direct_logit_attribution(trace, query, *tokens)
    rows = fold_tokens(token_importance(sources, query), {query, min(selection.key, query)}, MAX_ROWS)
    curves, rest = select_curves(trace, sources, query)
    guesses = lens_summaries(trace, range(query, query + 1))
    depths = len(depth_names(trace)) - 1  # after the embedding
    blocks = []
    for layer in range(config.num_layers):
        depth = depths * (layer + 1) // config.num_layers
        guess_id, probability = int(guesses.top[depth, 0, 0]), float(guesses.probabilities[depth, 0, 0])
        guess = shorten_token(trace.vocabulary[guess_id]) if guess_id < len(trace.vocabulary) else ""
        blocks.append(
            {
                "guess": guess,
                "probability": finite_or_none(probability),
                "norm": stream_norm(trace, layer, query),
                "heads": [finite_or_none(value) for value in attribution.heads[layer]],
                "feed_forward": finite_or_none(attribution.feed_forward[layer]),
            }
        )
    distribution = next_token_distribution(trace, query)
    return WholeModelFigure(
        alt=whole_model_alt_text(trace, selection, sources),
        query=query,
        key=selection.key,
        answer=shorten_token(trace.vocabulary[token_id]),
        rank=token_rank(trace, query, token_id),
        probability=finite_or_none(float(distribution.plain[token_id])),
        contrast="" if contrast_id is None else shorten_token(trace.vocabulary[contrast_id]),
        logit=finite_or_none(attribution.logit),
        norm=stream_norm(trace, -1, query),
        rows=[make_row(trace, row) for row in rows],
        blocks=blocks,
        curves=curves,
        largest_norm=max((norm or 0.0 for *_where, norm, _effect, _weight in curves), default=0.0),
        largest_effect=max((abs(effect or 0.0) for *_where, effect, _weight in curves), default=0.0),
        rest=list(rest),
        terms=[[kind, label, finite_or_none(value)] for kind, label, value in logit_terms(trace, selection)],
        key_groups=config.num_heads // (config.num_kv_heads or config.num_heads),
        open=make_open_block(trace, selection, rows, sources),
    )


def share_curve_scale(figure: WholeModelFigure, other: WholeModelFigure) -> WholeModelFigure:
    """Return the figure with the widths and the colours of both runs' curves."""
    norm, effect = max(figure.largest_norm, other.largest_norm), max(figure.largest_effect, other.largest_effect)
    return replace(figure, largest_norm=norm, largest_effect=effect)


def finite_or_none(value: float) -> float | None:
    """Return a number as JSON takes it, finer than any text rounds it again; None for NaN and infinity."""
    return round(float(value), 6) if np.isfinite(value) else None


def stream_norm(trace: Trace, layer: int, position: int) -> float | None:
    """Return ‖residual stream‖₂ after a block; before the first for layer -1."""
    name = "blocks.0.resid_pre" if layer < 0 else block_output_tap(trace.config, layer)
    return finite_or_none(float(np.linalg.norm(trace[name][position].astype(np.float64))))


def make_row(trace: Trace, positions: range) -> list:
    """Return the row of a token or a fold."""
    if len(positions) == 1:
        text = shorten_token(trace.tokens[positions[0]], max_chars=13)
    else:
        text = _("… {count} tokens", count=len(positions))
    return [positions[0], positions[-1], text]


def token_importance(sources: AttributionBySource, query: int) -> np.ndarray:
    """Return how much is taken from each token, (T,): the sum of norms; tokens near the query go first among equals."""
    near = -np.abs(np.arange(sources.norms.shape[-1]) - query)
    return np.nan_to_num(sources.norms.sum((0, 1))) + 1e-9 * near


def select_curves(
    trace: Trace, sources: AttributionBySource, query: int
) -> tuple[list[list], tuple[int, float | None]]:
    """Return the curves that are drawn, the widest first; and the number and the summed effects of the others."""
    norms, effects = np.nan_to_num(sources.norms[..., :query]), sources.effects[..., :query]
    if not norms.size:
        return [], (0, 0.0)
    sizes = np.abs(np.nan_to_num(effects))
    is_drawn = (norms >= MIN_SHARE * norms.max()) | (sizes >= MIN_SHARE * sizes.max())
    is_drawn &= norms > 0
    order = np.argsort(-norms, axis=None, kind="stable")
    drawn = [index for index in order.tolist() if is_drawn.flat[index]][:MAX_CURVES]
    is_drawn = np.zeros(norms.shape, dtype=bool)
    is_drawn.flat[drawn] = True
    curves = []
    for layer, head, key in np.transpose(np.unravel_index(np.array(drawn, dtype=int), norms.shape)).tolist():
        weight = trace[f"blocks.{layer}.attn.pattern"][head, query, key]
        numbers = norms[layer, head, key], effects[layer, head, key], weight
        curves.append([layer, head, key, *map(finite_or_none, numbers)])
    others = ~is_drawn & (norms > 0)
    return curves, (int(others.sum()), finite_or_none(effects[others].sum()))


def logit_terms(trace: Trace, selection: Selection) -> list[tuple[str, str, float]]:
    """Return the terms of the explained logit: kind, label and value."""
    query, tokens = selection.query, target_and_contrast(trace, selection)
    parts, sources = direct_logit_attribution(trace, query, *tokens), attribution_by_source(trace, query, *tokens)
    terms = [("embedding", _("embedding"), parts.token)]
    if "position_embed" in trace:
        terms.append(("embedding", _("position"), parts.positions))
    if query:
        terms.append(("sources", _("heads, from earlier tokens"), float(sources.effects[..., :query].sum())))
    terms.append(("own", _("heads, from the token itself"), float(sources.effects[..., query].sum())))
    if sources.changed_heads.any():
        terms.append(("rest", _("changed heads"), float(sources.changed_heads.sum())))
    if parts.biases.any():
        terms.append(("rest", _("biases of W_O"), float(parts.biases.sum())))
    terms.append(("feed_forward", _("feed-forward"), float(parts.feed_forward.sum())))
    if has_logit_bias_terms(trace.config):
        terms.append(("rest", logit_bias_terms_short_label(trace.config), parts.shift))
    if has_intervention_additions(trace):
        terms.append(("rest", _("changes"), parts.changes))
    return terms


def make_open_block(
    trace: Trace, selection: Selection, rows: Sequence[range], sources: AttributionBySource
) -> dict[str, Any] | None:
    """Return the open block; None if all are closed."""
    level, layer, head = selection.option("open"), selection.layer, selection.head
    if not level:
        return None
    pattern = trace[f"blocks.{layer}.attn.pattern"]  # (H, T, T)
    starts = [row[0] for row in rows]
    patterns = []
    for weights in pattern:
        sums = np.add.reduceat(weights.astype(np.float64), starts, axis=1)  # (T, rows)
        patterns.append(
            [
                [finite_or_none(x) for x in sums[row[0], : index + 1]] if len(row) == 1 else []
                for index, row in enumerate(rows)
            ]
        )
    cell = head_computation(trace, selection, sources) if level == "cell" else None
    return {"level": level, "layer": layer, "head": head, "patterns": patterns, "cell": cell}


def head_computation(trace: Trace, selection: Selection, sources: AttributionBySource) -> dict[str, Any]:
    """Return the steps from q·k to the contribution to the logit."""
    layer, head, query, key = selection.layer, selection.head, selection.query, selection.key
    config, block = trace.config, f"blocks.{selection.layer}.attn"
    cell = attention_cell(trace, layer, head, query, key)
    score = trace[f"{block}.scores"][head, query, key]
    weight = trace[f"{block}.pattern"][head, query, key]
    divisor = score_divisor_in_numbers(config)
    steps = [
        ("dot", dot_product_label(config, layer), format_number(cell.dot)),
        ("score", _("÷ {divisor}: score before mask and softmax", divisor=divisor), format_number(score)),
    ]
    if config.score_cap:
        cap = _("soft-capped at ±{cap}", cap=f"{config.score_cap:g}")
        steps.append(("capped", cap, format_number(cell.capped)))
    mask = _("hidden") if weight == 0 else _("visible")
    steps += [
        ("mask", _("+ mask: this key is"), mask),
        ("weight", _("softmax: share of the row"), format_number(weight)),
    ]
    if sources.changed_heads[layer, head]:
        effect = sources.changed_heads[layer, head]
        name = _("a change of the run replaces what this head adds")
        steps.append(("effect", name, format_contribution(effect)))
    else:
        v = trace.head_value(f"{block}.v", head)[key].astype(np.float64)
        norm, effect = sources.norms[layer, head, key], sources.effects[layer, head, key]
        moved, token = float(weight) * float(np.linalg.norm(v)), target_text(trace, selection)
        steps += [
            ("value", _("× v: norm of the vector"), format_number(moved)),
            ("norm", _("× W_O: norm that it writes"), format_number(norm)),
            ("effect", _("adds to the logit of {token}", token=token), format_contribution(effect)),
        ]
    if selection.depth == "story":
        steps = story_steps(trace, selection, sources)
    q, keys = query_key_vectors(trace, layer, head)
    return {
        "query": [finite_or_none(x) for x in q[query]],
        "key": [finite_or_none(x) for x in keys[key]],
        "steps": [{"kind": kind, "name": name, "value": value} for kind, name, value in steps],
    }


def dot_product_label(config: ModelConfig, layer: int) -> str:
    """Name the product of q and k, with what was done to both before it."""
    if config.qk_norm:
        if config.has_rope(layer):
            return _("q·k after QK-norm and RoPE: sum of products")
        return _("q·k after QK-norm: sum of the products")
    return _("q·k after RoPE: sum of the products") if config.has_rope(layer) else _("q·k: sum of the products")


def story_steps(trace: Trace, selection: Selection, sources: AttributionBySource) -> list[tuple[str, str, str]]:
    """Return the steps from the fit of question and key to the answer in everyday words: kind, name and value."""
    layer, head, query, key = selection.layer, selection.head, selection.query, selection.key
    rank, count = key_fit(trace, selection)
    effect = sources.effects[layer, head, key]
    score = trace[f"blocks.{layer}.attn.scores"][head, query, key]
    weight = float(trace[f"blocks.{layer}.attn.pattern"][head, query, key])
    steps = [
        ("score", _("score of q and k"), format_number(score)),
        ("rank", _("place of this score"), _("{rank} of {count}", rank=rank, count=count)),
        ("weight", _("share of its attention"), format_percent(weight)),
    ]
    if not sources.changed_heads[layer, head]:
        name = _("for the answer") if effect >= 0 else _("against the answer")
        if float(f"{effect:.2f}") == 0:
            name = _("of little effect on the answer")
        steps.append(("effect", name, format_contribution(effect)))
    return steps


def key_fit(trace: Trace, selection: Selection) -> tuple[int, int]:
    """Return the key's rank by score among the keys that the query sees, and their number."""
    layer, head, query, key = selection.layer, selection.head, selection.query, selection.key
    scores = trace[f"blocks.{layer}.attn.scores"][head, query, : query + 1]
    is_seen = trace[f"blocks.{layer}.attn.pattern"][head, query, : query + 1] > 0
    is_seen[key] = True
    return int((scores[is_seen] > scores[key]).sum()) + 1, int(is_seen.sum())


def cell_sentence(trace: Trace, selection: Selection) -> str:
    """Return the story's sentence on an open cell: how much the query looks at the key, and how well they fit."""
    layer, head, query, key = selection.layer, selection.head, selection.query, selection.key
    rank, count = key_fit(trace, selection)
    values = {
        "query": quote_word(trace.tokens[query]),
        "key": quote_word(trace.tokens[key]),
        "percent": format_percent(float(trace[f"blocks.{layer}.attn.pattern"][head, query, key])),
        "count": count,
        "better": rank - 1,
    }
    if count == 1:
        return _("{query} sees only itself here, so all its attention stays there.", **values)
    if rank == 1:
        template = N_(
            "{query} gives {key} {percent} of its attention: of {count} keys (k), this one fits its question (q) best."
        )
    else:
        template = N_(
            "{query} gives {key} {percent} of its attention: {better} of {count} keys (k) fit its question (q) better."
        )
    return translate(template, **values)


def block_sentence(heads: float, feed_forward: float, token: str) -> str:
    """Return the story's sentence on an open block: whether its two parts add to the token's logit."""
    if (heads > 0) == (feed_forward > 0):
        template = (
            N_("Taken together, the heads of this layer speak for {token}, and so does its feed-forward.")
            if heads > 0
            else N_("Taken together, the heads of this layer speak against {token}, and so does its feed-forward.")
        )
    else:
        template = (
            N_("Taken together, the heads of this layer speak for {token}; its feed-forward speaks against it.")
            if heads > 0
            else N_("Taken together, the heads of this layer speak against {token}; its feed-forward speaks for it.")
        )
    return translate(template, token=token)


NEUTRAL_SHARE = 0.04  # of the largest effect: less is drawn grey, see effectStyle in whole_model.js


def head_sentence(
    trace: Trace,
    selection: Selection,
    key: int,
    sources: AttributionBySource,
    heads: np.ndarray,
    token: str,
) -> str:
    """Return the story's sentences on an open head: where it looks most, and what that and the head say of the token.

    Args:
        heads: (L, H), what each head adds to the token's logit.
    """
    layer, head, query = selection.layer, selection.head, selection.query
    look = _(
        "In this head, {query} looks most at {key} ({percent}).",
        query=quote_word(trace.tokens[query]),
        key=quote_word_in_text(trace.tokens, key),
        percent=format_percent(float(trace[f"blocks.{layer}.attn.pattern"][head, query, key])),
    )
    if changed_head_mask(trace, layer, query)[head]:
        is_off = heads[layer, head] == 0
        state = _("The head is off and adds nothing.") if is_off else _("A change replaces what this head adds.")
        return f"{look} {state}"
    look_effect, head_effect = (
        0 if abs(value) < NEUTRAL_SHARE * np.nanmax(np.abs(values)) else int(np.sign(value))
        for value, values in ((sources.effects[layer, head, key], sources.effects), (heads[layer, head], heads))
    )
    says = {
        0: N_("This look says little about {token}."),
        1: N_("This look speaks for {token}."),
        -1: N_("This look speaks against {token}."),
    }
    texts = [look, translate(says[look_effect], token=token)]
    if head_effect != look_effect:
        texts.append(
            {
                0: _("The head as a whole does little."),
                1: _("The head as a whole speaks for it."),
                -1: _("The head as a whole speaks against it."),
            }[head_effect]
        )
    return " ".join(texts)


def target_text(trace: Trace, selection: Selection) -> str:
    """Return the explained token, shortened; with the contrast token if there is one."""
    token_id, contrast_id = target_and_contrast(trace, selection)
    text = shorten_token(trace.vocabulary[token_id])
    return text if contrast_id is None else f"{text} − {shorten_token(trace.vocabulary[contrast_id])}"


def whole_model_alt_text(trace: Trace, selection: Selection, sources: AttributionBySource) -> str:
    """Return the figure in a sentence."""
    query, tokens = selection.query, target_and_contrast(trace, selection)
    texts = [
        _(
            "The model at {token}: {layers} blocks, the token’s residual stream through them, and what {heads} heads "
            "in each take from earlier tokens.",
            token=quote_token(trace.tokens[query]),
            layers=trace.config.num_layers,
            heads=trace.config.num_heads,
        )
    ]
    if best := largest_earlier_source(sources, query):
        layer, head, key = best
        texts.append(
            _(
                "The most for {logit} comes from {key} through layer {layer} head {head}: {effect}.",
                logit=logit_label(trace, *tokens),
                key=quote_token_in_text(trace.tokens, key),
                layer=layer,
                head=head,
                effect=format_contribution(sources.effects[best]),
            )
        )
    return " ".join(texts)


def whole_model_sentence(trace: Trace, selection: Selection) -> str:
    """Return what the figure shows in this run, in a sentence: of the whole model, or of what is open."""
    query, tokens = selection.query, target_and_contrast(trace, selection)
    sources, attribution = attribution_by_source(trace, query, *tokens), direct_logit_attribution(trace, query, *tokens)
    level, layer, head, key = selection.option("open"), selection.layer, selection.head, selection.key
    quote = quote_word if selection.depth == "story" else quote_token
    token, after = quote(trace.vocabulary[tokens[0]]), quote(trace.tokens[query])
    if level == "block" and selection.depth == "story":
        return block_sentence(attribution.heads[layer].sum(), attribution.feed_forward[layer], token)
    if level == "block":
        return _(
            "Layer {layer}: its heads add {heads} to the logit of {token}, its feed-forward {feed_forward}.",
            layer=layer,
            heads=format_contribution(attribution.heads[layer].sum()),
            token=token,
            feed_forward=format_contribution(attribution.feed_forward[layer]),
        )
    if level == "cell" and selection.depth == "story":
        return cell_sentence(trace, selection)
    if level:
        weights = trace[f"blocks.{layer}.attn.pattern"][head, query, : query + 1]
        if level == "head":
            key = int(weights.argmax())
        if level == "head" and selection.depth == "story":
            return head_sentence(trace, selection, key, sources, attribution.heads, token)
        if level == "head":
            template = N_(
                "Layer {layer} head {head}: {query} looks most at {key} ({percent}), which adds {effect} to the logit "
                "of {token}."
            )
        else:
            template = N_(
                "Layer {layer} head {head}: {query} looks at {key} with {percent}, which adds {effect} to the logit of "
                "{token}."
            )
        return translate(
            template,
            layer=layer,
            head=head,
            query=after,
            key=quote_token_in_text(trace.tokens, key),
            percent=format_percent(float(weights[key])),
            effect=format_contribution(sources.effects[layer, head, key]),
            token=token,
        )
    return whole_sentence(trace, selection, sources, attribution.logit)


def whole_sentence(trace: Trace, selection: Selection, sources: AttributionBySource, logit: float) -> str:
    """Return the sentence while nothing is open: the answer, and the largest contribution from an earlier token."""
    query, (token_id, contrast_id) = selection.query, target_and_contrast(trace, selection)
    quote = quote_word if selection.depth == "story" else quote_token
    names = {"after": quote(trace.tokens[query]), "token": quote(trace.vocabulary[token_id])}
    rank = token_rank(trace, query, token_id)
    if rank == 1:
        start = _("After {after} the model expects {token}", **names)
    else:
        start = _("After {after} the model has {token} in place {rank:,}", **names, rank=rank)
    best, score = largest_earlier_source(sources, query), f"{logit:.2f}".replace("-", "−")
    if best is None:
        return _("{start}: no earlier token adds to its logit, {score}.", start=start, score=score)
    layer, head, key = best
    if selection.depth == "story" and contrast_id is None:
        return _(
            "{start}. The look back that adds most to its score is at {key}.",
            start=start,
            key=quote_word_in_text(trace.tokens, key),
        )
    template = (
        N_("{start}. The look back that adds most: layer {layer} head {head} at {key} ({effect} of logit {score}).")
        if contrast_id is None
        else N_("{start}: layer {layer} head {head} looks back at {key} ({effect} of the logit difference, {score}).")
    )
    effect, source = format_contribution(sources.effects[best]), quote_token_in_text(trace.tokens, key)
    return translate(template, start=start, layer=layer, head=head, key=source, effect=effect, score=score)


def cell_formula(trace: Trace, selection: Selection) -> str:
    """Return the computation of the open cell in numbers; "" if none is open."""
    if selection.option("open") != "cell":
        return ""
    layer, head, query, key = selection.layer, selection.head, selection.query, selection.key
    cell, tokens = attention_cell(trace, layer, head, query, key), target_and_contrast(trace, selection)
    sources = attribution_by_source(trace, query, *tokens)
    return "\n".join(
        (
            _(
                "score = q·k / {divisor} = {dot} / {number} = {score}, of {vectors}",
                vectors=score_inputs_text(trace.config, layer),
                divisor=score_divisor_formula(trace.config),
                number=score_divisor_in_numbers(trace.config),
                dot=format_six_digits(cell.dot),
                score=format_six_digits(cell.score),
            ),
            _(
                "weight = e^(score − largest) / Σ e^(score − largest) = {part} / {total} = {weight}",
                part=format_six_digits(cell.exp_score),
                total=format_six_digits(cell.exp_total),
                weight=format_six_digits(cell.weight),
            ),
            _(
                "‖weight · W_O v‖₂ = {norm}; its product with {logit}: {effect}",
                norm=format_number(sources.norms[layer, head, key]),
                logit=logit_label(trace, *tokens),
                effect=format_contribution(sources.effects[layer, head, key]),
            ),
        )
    )


def check_source_sum(trace: Trace, selection: Selection) -> RecomputationCheck:
    """Check the sum of all curves and other terms against the captured logit."""
    tokens = target_and_contrast(trace, selection)
    parts, sources = (
        measure(trace, selection.query, *tokens) for measure in (direct_logit_attribution, attribution_by_source)
    )
    total = sum(value for _kind, _label, value in logit_terms(trace, selection))
    rounding = check_component_sum(trace, selection.query, *tokens)
    split = RecomputationCheck.from_arrays(
        trace.dtype,
        sources.effects.sum(-1) + sources.changed_heads,
        parts.heads,
        np.abs(sources.effects).sum(-1) + np.abs(parts.heads) + parts.size,
    )
    return RecomputationCheck.worst([RecomputationCheck(abs(total - parts.logit), rounding.times), split])


def verify_whole_model(trace: Trace, selection: Selection) -> Verification:
    """Verify the values that are drawn, and that the curves and other parts add up to the logit."""
    suffix = "_rot" * (trace.config.position == "rope")
    names = [*PARTS, *NORMS, "blocks.0.resid_pre", "blocks.*.attn.pattern", "blocks.*.attn.v", "final_norm", "logits"]
    if selection.option("open") == "cell":
        names += [f"blocks.{{layer}}.attn.{name}" for name in (f"q{suffix}", f"k{suffix}", "q", "k", "scores")]
    check = N_("the sum of all curves and other parts against the captured logit"), check_source_sum
    return verify_derived(*names, against=check)(trace, selection)
