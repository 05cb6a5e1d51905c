"""The context that a lesson's questions are evaluated in, a page state with its run, and measures of the run."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from explorer.analysis.direct_logit_attribution import LogitAttribution, direct_logit_attribution
from explorer.analysis.embedding import embedding_parts
from explorer.analysis.heads import HEAD_SCORES, head_scores
from explorer.analysis.next_token import NextTokenDistribution, mean_text_loss, next_token_distribution
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import OTHER_PREFIX, PageState
from explorer.state.run import Run
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from model.parameter_and_flop_counts import parameter_table

SETTINGS_FIELDS = tuple(name.name for name in fields(GenerationSettings))
RUN_FIELDS = ("text", "checkpoint", "edits", *(OTHER_PREFIX + name for name in ("text", "checkpoint", "edits")))
StateOpener = Callable[[Mapping[str, Any]], PageState]


def selection_fields() -> tuple[str, ...]:
    """Return the fields of the selection, but those of the lesson."""
    return tuple(name for name in Selection().as_dict() if name not in ("lesson", "step", "reply"))


def state_fields() -> tuple[str, ...]:
    """Return the state fields that a lesson may set; token ids would mean nothing to its reader."""
    return (*RUN_FIELDS, *selection_fields(), *SETTINGS_FIELDS)


class TraceSource(Protocol):
    """Source of each run's model and trace (implemented in `explorer.tracing.run_service`)."""

    def model_and_trace(self, run: Run) -> tuple[Any, Trace]:
        """Return the model, which must be kept alive as long as its trace is in use, and the trace."""


@dataclass(frozen=True)
class EvaluationContext:
    """A page state, with its model, trace and settings computed once.

    Attributes:
        runs: the source of traces.
        open_state: a raw state -> the page state, with its text tokenized.
        state: the raw state, by the URL's names.
        derived: contexts that `replace` returned, by their changes.
    """

    runs: TraceSource
    open_state: StateOpener
    state: Mapping[str, Any]
    derived: dict[Any, "EvaluationContext"] = field(default_factory=dict, repr=False)

    @cached_property
    def page_state(self) -> PageState:
        return self.open_state(self.state)

    @cached_property
    def model_and_trace(self) -> tuple[Any, Trace]:
        """The model, which must be kept alive as long as its trace is in use, and the trace."""
        return self.runs.model_and_trace(self.page_state.run)

    @property
    def trace(self) -> Trace:
        return self.model_and_trace[1]

    @cached_property
    def selection(self) -> Selection:
        return self.page_state.selection.clamp_to_trace(self.trace)

    @cached_property
    def settings(self) -> GenerationSettings:
        return GenerationSettings.parse(self.state)

    @property
    def run(self) -> Run:
        return self.page_state.run

    def replace(self, change: Mapping[str, Any]) -> "EvaluationContext":
        """Return the context with other values of some state fields; another text is evaluated at its last token."""
        if not change:
            return self
        key = tuple(sorted((name, str(value)) for name, value in change.items()))
        if key not in self.derived:
            self.derived[key] = self._replace(change)
        return self.derived[key]

    def _replace(self, change: Mapping[str, Any]) -> "EvaluationContext":
        if set(change) <= {*selection_fields(), *SETTINGS_FIELDS}:
            changed = EvaluationContext(self.runs, self.open_state, {**self.state, **change})
            selection_change = {name: value for name, value in change.items() if name in selection_fields()}
            page_state = replace(self.page_state, selection=self.page_state.selection.replace(**selection_change))
            vars(changed).update(page_state=page_state, model_and_trace=self.model_and_trace)
            return changed
        outdated = ("prompt", "generated", "query", "key", "branches", "began", "dropped") if "text" in change else ()
        state = {name: value for name, value in self.state.items() if name not in outdated}
        return EvaluationContext(self.runs, self.open_state, state | dict(change))


PARAMETER_GROUPS = {  # of a model -> beginnings of the names of their rows in a table of parameters
    "all": ("",),
    "embedding": ("token embedding", "position embedding"),
    "attention": ("attention",),
    "feed_forward": ("feed-forward",),
    "norms": ("norms", "query and key norms"),
}
SIZES = ("vocab_size", "context_length", "d_model", "d_head", "d_ff", "num_layers", "num_heads")


def find_token_id(context: EvaluationContext, token: str = "", rank: int = 0) -> int:
    """Return the id of a token by its text, or by its rank after the selected token.

    Raises:
        ValueError: the model has no such token.
    """
    if rank:
        return int(predict_next_token(context).top(rank)[-1])
    if token not in context.trace.vocabulary:
        raise ValueError(f"the model has no token {token!r:.60}")
    return list(context.trace.vocabulary).index(token)


def predict_next_token(context: EvaluationContext) -> NextTokenDistribution:
    """Predict the next token after the selected one, with the state's sampling settings."""
    settings, run = context.settings, context.run
    start = run.dropped + len(run.token_ids) - len(context.trace)
    limits = {"top_p": settings.top_p, "min_p": settings.min_p, "repetition_penalty": settings.repetition_penalty}
    draw_options = {"seed": settings.seed, "start": start}
    return next_token_distribution(
        context.trace, context.selection.query, settings.temperature, settings.top_k, **limits, **draw_options
    )


def _number(context: EvaluationContext, value: float) -> float:
    return value


def _probability(context: EvaluationContext, token: str = "", rank: int = 0) -> float:
    return predict_next_token(context).plain[find_token_id(context, token, rank)]


def _chance(context: EvaluationContext, token: str = "", rank: int = 0) -> float:
    return predict_next_token(context).sampled[find_token_id(context, token, rank)]


def _logit(context: EvaluationContext, token: str = "", rank: int = 0) -> float:
    return context.trace["logits"][context.selection.query, find_token_id(context, token, rank)]


def _surprisal(context: EvaluationContext, token: str = "", rank: int = 0) -> float:
    return -math.log2(_probability(context, token, rank))


def _rank(context: EvaluationContext, token: str) -> float:
    return predict_next_token(context).rank(find_token_id(context, token))


def _entropy(context: EvaluationContext) -> float:
    return predict_next_token(context).plain_entropy


def _candidates(context: EvaluationContext) -> float:
    return float((predict_next_token(context).sampled > 0).sum())


def _cell_measure(name: str) -> Callable[[EvaluationContext], float]:
    def cell(context: EvaluationContext) -> float:
        selection = context.selection
        return context.trace[f"blocks.{selection.layer}.attn.{name}"][selection.head, selection.query, selection.key]

    return cell


def _head_score(context: EvaluationContext, score: str) -> float:
    selection = context.selection
    return _scores(context, score)[selection.layer, selection.head]


def _max_head_score(context: EvaluationContext, score: str) -> float:
    return np.nanmax(_scores(context, score))


def _heads_above(context: EvaluationContext, score: str, least: float) -> float:
    return float((_scores(context, score) >= least).sum())


def _scores(context: EvaluationContext, score: str) -> np.ndarray:
    cached = vars(context).setdefault("head_scores", {})
    if score not in cached:
        cached[score] = np.nan_to_num(head_scores(context.trace, score))
    return cached[score]


def _vector(context: EvaluationContext) -> np.ndarray:
    """Return the selected value's vector at the selected token, of the selected head if it has heads."""
    selection, value = context.selection, context.trace[context.selection.tap]
    if value.ndim == 3:
        value = context.trace.head_value(selection.tap, selection.head)
    return value[selection.query].astype(np.float64)


def _norm(context: EvaluationContext) -> float:
    return float(np.linalg.norm(_vector(context)))


def _rms(context: EvaluationContext) -> float:
    return float(np.sqrt(np.mean(_vector(context) ** 2)))


def _element(context: EvaluationContext) -> float:
    return float(_vector(context)[context.selection.dim])


def _positive(context: EvaluationContext) -> float:
    return float((_vector(context) > 0).mean())


def _cosine(context: EvaluationContext, a: str, b: str) -> float:
    table = context.trace.weights["token_embedding.weight"]
    x, y = (table[find_token_id(context, token)].astype(np.float64) for token in (a, b))
    return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))


def _head_adds(context: EvaluationContext, token: str = "", rank: int = 0) -> float:
    selection = context.selection
    return _attribution(context, token, rank).heads[selection.layer, selection.head]


def _feed_forward_adds(context: EvaluationContext, token: str = "", rank: int = 0) -> float:
    return _attribution(context, token, rank).feed_forward[context.selection.layer]


def _attribution(context: EvaluationContext, token: str, rank: int) -> LogitAttribution:
    return direct_logit_attribution(context.trace, context.selection.query, find_token_id(context, token, rank))


def _tokens(context: EvaluationContext) -> float:
    return len(context.trace)


def _loss(context: EvaluationContext) -> float:
    return mean_text_loss(context.trace)


def _position_share(context: EvaluationContext) -> float:
    parts = embedding_parts(context.trace, context.selection.query)
    if parts.position is None:
        return 0.0
    token_norm, position_norm = (float(np.linalg.norm(part)) for part in (parts.row * parts.scale, parts.position))
    return position_norm / (token_norm + position_norm)


def _parameters(context: EvaluationContext, part: str = "all") -> float:
    rows = parameter_table(context.trace.config)
    return float(sum(row.count for row in rows if row.component.startswith(PARAMETER_GROUPS[part])))


def _size(context: EvaluationContext, name: str) -> float:
    return float(getattr(context.trace.config, name))


def _ln_vocabulary(context: EvaluationContext) -> float:
    return math.log(context.trace.config.vocab_size)


MEASURES: dict[str, Callable[..., float]] = {
    "number": _number,
    "probability": _probability,
    "chance": _chance,
    "logit": _logit,
    "surprisal": _surprisal,
    "rank": _rank,
    "entropy": _entropy,
    "candidates": _candidates,
    "score": _cell_measure("scores"),
    "weight": _cell_measure("pattern"),
    "head_score": _head_score,
    "most_head_score": _max_head_score,
    "heads_above": _heads_above,
    "norm": _norm,
    "rms": _rms,
    "element": _element,
    "positive": _positive,
    "cosine": _cosine,
    "head_adds": _head_adds,
    "feed_forward_adds": _feed_forward_adds,
    "tokens": _tokens,
    "loss": _loss,
    "position_share": _position_share,
    "parameters": _parameters,
    "size": _size,
    "ln_vocabulary": _ln_vocabulary,
}
TOKEN_MEASURES = ("probability", "chance", "logit", "surprisal", "head_adds", "feed_forward_adds")
ARGUMENT_CHOICES = {
    "score": tuple(HEAD_SCORES),
    "part": tuple(PARAMETER_GROUPS),
    "name": SIZES,
}  # of arguments that are words
