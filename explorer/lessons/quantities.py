"""Quantities in lessons: the run and state they are evaluated in, measures of it, arithmetic, and conditions."""

import inspect
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from explorer.analysis.direct_logit_attribution import (
    LogitAttribution,
    direct_logit_attribution,
)
from explorer.analysis.embedding import embedding_parts
from explorer.analysis.head_scores import HEAD_SCORES, head_scores
from explorer.analysis.next_token import NextTokenDistribution, mean_text_loss, predict_next_token
from explorer.explain.notation import format_number
from explorer.lessons.yaml_blocks import (
    LessonError,
    ListWithLines,
    MappingWithLines,
    is_value_of_kind,
    validate_mapping_fields,
)
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import OTHER_PREFIX, PageState, RunRequest
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from model.config import parameter_table

SETTINGS_FIELDS = tuple(name.name for name in fields(GenerationSettings))
RUN_FIELDS = ("text", "checkpoint", "edits", *(OTHER_PREFIX + name for name in ("text", "checkpoint", "edits")))
StateOpener = Callable[[Mapping[str, Any]], PageState]


def lesson_selection_fields() -> tuple[str, ...]:
    """Return the fields of the selection, but those of the lesson."""
    return tuple(name for name in Selection().as_dict() if name not in ("lesson", "step", "reply"))


def lesson_state_fields() -> tuple[str, ...]:
    """Return the state fields that a lesson may set; token ids would mean nothing to its reader."""
    return (*RUN_FIELDS, *lesson_selection_fields(), *SETTINGS_FIELDS)


class ModelAndTraceProvider(Protocol):
    """Source of each run's model and trace (implemented in `explorer.tracing.run_service`)."""

    def model_and_trace(self, run: RunRequest) -> tuple[Any, Trace]:
        """Return the model, which must be kept alive as long as its trace is in use, and the trace."""


@dataclass(frozen=True)
class QuantityContext:
    """A page state, with its model, trace and settings computed once.

    Attributes:
        runs: the source of traces.
        open_state: a raw state -> the page state, with its text tokenized.
        state: the raw state, by the URL's names.
        derived: contexts that `replace` returned, by their changes.
    """

    runs: ModelAndTraceProvider
    open_state: StateOpener
    state: Mapping[str, Any]
    derived: dict[Any, "QuantityContext"] = field(default_factory=dict, repr=False)

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

    @cached_property
    def prediction(self) -> NextTokenDistribution:
        """The prediction after the selected token, with the state's sampling settings."""
        start = self.run.first_visible(len(self.trace))
        return predict_next_token(self.trace, self.selection.query, self.settings, start)

    @property
    def run(self) -> RunRequest:
        return self.page_state.run

    def replace(self, change: Mapping[str, Any]) -> "QuantityContext":
        """Return the context with other values of some state fields; another text is evaluated at its last token."""
        if not change:
            return self
        key = tuple(sorted((name, str(value)) for name, value in change.items()))
        if key not in self.derived:
            self.derived[key] = self._replace(change)
        return self.derived[key]

    def _replace(self, change: Mapping[str, Any]) -> "QuantityContext":
        if set(change) <= {*lesson_selection_fields(), *SETTINGS_FIELDS}:
            changed = QuantityContext(self.runs, self.open_state, {**self.state, **change})
            selection_change = {name: value for name, value in change.items() if name in lesson_selection_fields()}
            page_state = replace(self.page_state, selection=self.page_state.selection.replace(**selection_change))
            vars(changed).update(page_state=page_state, model_and_trace=self.model_and_trace)
            return changed
        run_fields = "prompt", "generated", "query", "key", "branches", "began", "dropped", "chat"
        outdated = run_fields if "text" in change else ()
        state = {name: value for name, value in self.state.items() if name not in outdated}
        return QuantityContext(self.runs, self.open_state, state | dict(change))


PARAMETER_GROUPS = {  # of a model -> beginnings of the names of their rows in a table of parameters
    "all": ("",),
    "embedding": ("token embedding", "position embedding"),
    "attention": ("attention",),
    "feed_forward": ("feed-forward",),
    "norms": ("norms", "query and key norms"),
}
SIZES = ("vocab_size", "context_length", "d_model", "d_head", "d_ff", "num_layers", "num_heads")


def format_answer_number(value: float, digits: int = 3) -> str:
    """Format a number of a run: whole numbers in full, others with some significant digits."""
    return f"{int(value):,}".replace("-", "−") if float(value).is_integer() else format_number(value, digits)


def find_token_id(context: QuantityContext, token: str = "", rank: int = 0) -> int:
    """Return the id of a token by its text, or by its rank after the selected token.

    Raises:
        ValueError: the model has no such token.
    """
    if rank:
        return int(context.prediction.top(rank)[-1])
    if token not in context.trace.vocabulary:
        raise ValueError(f"the model has no token {token!r:.60}")
    return list(context.trace.vocabulary).index(token)


def _number(context: QuantityContext, value: float) -> float:
    return value


def _probability(context: QuantityContext, token: str = "", rank: int = 0) -> float:
    return context.prediction.plain[find_token_id(context, token, rank)]


def _chance(context: QuantityContext, token: str = "", rank: int = 0) -> float:
    return context.prediction.sampled[find_token_id(context, token, rank)]


def _logit(context: QuantityContext, token: str = "", rank: int = 0) -> float:
    return context.trace["logits"][context.selection.query, find_token_id(context, token, rank)]


def _surprisal(context: QuantityContext, token: str = "", rank: int = 0) -> float:
    return -math.log2(_probability(context, token, rank))


def _rank(context: QuantityContext, token: str) -> float:
    return context.prediction.rank(find_token_id(context, token))


def _cell(context: QuantityContext, name: str) -> float:
    """Return the selected head's score or weight of the selected query and key."""
    selection = context.selection
    return context.trace[f"blocks.{selection.layer}.attn.{name}"][selection.head, selection.query, selection.key]


def _head_score(context: QuantityContext, score: str) -> float:
    selection = context.selection
    return _scores(context, score)[selection.layer, selection.head]


def _max_head_score(context: QuantityContext, score: str) -> float:
    return np.nanmax(_scores(context, score))


def _heads_above(context: QuantityContext, score: str, least: float) -> float:
    return float((_scores(context, score) >= least).sum())


def _scores(context: QuantityContext, score: str) -> np.ndarray:
    cached = vars(context).setdefault("head_scores", {})
    if score not in cached:
        cached[score] = np.nan_to_num(head_scores(context.trace, score))
    return cached[score]


def _vector(context: QuantityContext) -> np.ndarray:
    """Return the selected value's vector at the selected token, of the selected head if it has heads."""
    selection, value = context.selection, context.trace[context.selection.tap]
    if value.ndim == 3:
        value = context.trace.head_value(selection.tap, selection.head)
    return value[selection.query].astype(np.float64)


def _cosine(context: QuantityContext, a: str, b: str) -> float:
    table = context.trace.weights["token_embedding.weight"]
    x, y = (table[find_token_id(context, token)].astype(np.float64) for token in (a, b))
    return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))


def _head_adds(context: QuantityContext, token: str = "", rank: int = 0) -> float:
    selection = context.selection
    return _attribution(context, token, rank).heads[selection.layer, selection.head]


def _feed_forward_adds(context: QuantityContext, token: str = "", rank: int = 0) -> float:
    return _attribution(context, token, rank).feed_forward[context.selection.layer]


def _attribution(context: QuantityContext, token: str, rank: int) -> LogitAttribution:
    return direct_logit_attribution(context.trace, context.selection.query, find_token_id(context, token, rank))


def _position_share(context: QuantityContext) -> float:
    parts = embedding_parts(context.trace, context.selection.query)
    if parts.position is None:
        return 0.0
    token_norm, position_norm = (float(np.linalg.norm(part)) for part in (parts.row * parts.scale, parts.position))
    return position_norm / (token_norm + position_norm)


def _parameters(context: QuantityContext, part: str = "all") -> float:
    rows = parameter_table(context.trace.config)
    return float(sum(row.count for row in rows if row.component.startswith(PARAMETER_GROUPS[part])))


def _size(context: QuantityContext, name: str) -> float:
    return float(getattr(context.trace.config, name))


MEASURES: dict[str, Callable[..., float]] = {
    "number": _number,
    "probability": _probability,
    "chance": _chance,
    "logit": _logit,
    "surprisal": _surprisal,
    "rank": _rank,
    "entropy": lambda look: look.prediction.plain_entropy,
    "candidates": lambda look: (look.prediction.sampled > 0).sum(),
    "score": lambda look: _cell(look, "scores"),
    "weight": lambda look: _cell(look, "pattern"),
    "head_score": _head_score,
    "most_head_score": _max_head_score,
    "heads_above": _heads_above,
    "norm": lambda look: np.linalg.norm(_vector(look)),
    "rms": lambda look: np.sqrt(np.mean(_vector(look) ** 2)),
    "element": lambda look: _vector(look)[look.selection.dim],
    "positive": lambda look: (_vector(look) > 0).mean(),
    "cosine": _cosine,
    "head_adds": _head_adds,
    "feed_forward_adds": _feed_forward_adds,
    "tokens": lambda look: len(look.trace),
    "loss": lambda look: mean_text_loss(look.trace),
    "mean_surprisal": lambda look: mean_text_loss(look.trace) / math.log(2),
    "position_share": _position_share,
    "parameters": _parameters,
    "size": _size,
    "ln_vocabulary": lambda look: math.log(look.trace.config.vocab_size),
}
COUNTS = ("rank", "candidates", "heads_above", "tokens", "parameters")  # measures that are whole numbers
SHARES = ("probability", "chance", "head_score", "most_head_score", "weight", "position_share", "cosine")  # at most 1
TOKEN_MEASURES = ("probability", "chance", "logit", "surprisal", "head_adds", "feed_forward_adds")
ARGUMENT_CHOICES = {
    "score": tuple(HEAD_SCORES),
    "part": tuple(PARAMETER_GROUPS),
    "name": SIZES,
}  # of arguments that are words


@dataclass(frozen=True)
class LessonQuantity:
    """A number computed from a run.

    Attributes:
        name: in `QUANTITIES`.
        arguments: its own arguments.
        change: state fields to replace before it is computed.
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    change: dict[str, Any] = field(default_factory=dict)

    def evaluate(self, context: QuantityContext) -> float:
        """Return the quantity's value in the context, with its own change of the state."""
        return float(QUANTITIES[self.name](context.replace(self.change), **self.arguments))

    def counted_tokens(self, context: QuantityContext) -> tuple[str, ...]:
        """Return the tokens that are counted; none of a quantity that counts no tokens."""
        return context.replace(self.change).trace.tokens if self.name == "tokens" else ()

    def replace(self, name: str, value: Any) -> "LessonQuantity":
        """Return the quantity with another value of an argument or of a state field."""
        if name in quantity_argument_kinds(self.name):
            return LessonQuantity(self.name, {**self.arguments, name: value}, self.change)
        return LessonQuantity(self.name, self.arguments, {**self.change, name: value})


def parse_quantity(spec: Any, line: int) -> LessonQuantity:
    """Parse a quantity from a lesson's file.

    Raises:
        LessonError: there is no such quantity, or it has no such argument.
    """
    if is_value_of_kind(spec, float):
        return LessonQuantity("number", {"value": float(spec)})
    if not isinstance(spec, MappingWithLines):
        raise LessonError(line, f"a quantity is a number or a mapping with “of”, got {spec!r:.60}")
    if spec.get("of") not in list(QUANTITIES):
        raise LessonError(line, f"“{spec.get('of')}” is no quantity; there are {', '.join(QUANTITIES)}")
    name, lines = spec["of"], spec.lines
    kinds = quantity_argument_kinds(name)
    validate_mapping_fields(
        spec,
        {
            "of": str,
            **{arg: kind for arg, (kind, _must) in kinds.items()},
            **dict.fromkeys(lesson_state_fields(), STATE_VALUE_KINDS),
        },
    )
    arguments, change = {}, {}
    for arg, value in spec.items():
        if arg in kinds:
            is_other = kinds[arg][0] is QUANTITY_KINDS
            arguments[arg] = parse_quantity(value, lines[arg]) if is_other else value
        elif arg != "of":
            change[arg] = value
    if missing := [arg for arg, (_kind, must) in kinds.items() if must and arg not in arguments]:
        raise LessonError(spec.line, f"“{name}” needs “{missing[0]}”")
    _check_arguments(name, arguments, spec.line)
    return LessonQuantity(name, arguments, change)


STATE_VALUE_KINDS = (str, int, float, bool)
QUANTITY_KINDS = (float, MappingWithLines)  # as it is written


def _check_arguments(name: str, arguments: dict[str, Any], line: int):
    for arg, value in arguments.items():
        if arg in ARGUMENT_CHOICES and value not in ARGUMENT_CHOICES[arg]:
            raise LessonError(
                line, f"“{arg}” of “{name}” is one of {', '.join(ARGUMENT_CHOICES[arg])}, got {value!r:.60}"
            )
    if "rank" in arguments and arguments["rank"] < 1:
        raise LessonError(line, f"“rank” is 1 for the likeliest token, got {arguments['rank']}")
    if name in TOKEN_MEASURES and len(arguments.keys() & {"token", "rank"}) != 1:
        raise LessonError(line, f"“{name}” needs either “token” or “rank”")


def quantity_argument_kinds(name: str) -> dict[str, tuple[Any, bool]]:
    """Return a quantity's own arguments: the kind of each, and whether it is required."""
    _look, *parameters = inspect.signature(QUANTITIES[name]).parameters.values()
    return {arg.name: (KIND_BY_ANNOTATION[arg.annotation], arg.default is arg.empty) for arg in parameters}


KIND_BY_ANNOTATION = {str: str, int: int, float: float, LessonQuantity: QUANTITY_KINDS}


def combine(operation: Callable[[float, float], float]) -> Callable[..., float]:
    """Return the quantity that applies an operation to two others."""

    def evaluate(context: QuantityContext, a: LessonQuantity, b: LessonQuantity) -> float:
        return operation(a.evaluate(context), b.evaluate(context))

    return evaluate


QUANTITIES: dict[str, Callable[..., float]] = {
    **MEASURES,
    "sum": combine(operator.add),
    "difference": combine(operator.sub),
    "product": combine(operator.mul),
    "ratio": combine(lambda a, b: a / b if b else math.nan),
}


def parse_quantities(specs: MappingWithLines) -> dict[str, LessonQuantity]:
    """Parse a mapping of names to quantities."""
    return {name: parse_quantity(value, specs.lines[name]) for name, value in specs.items()}


def parse_quantity_list(specs: Any, line: int, count: int = 2) -> list[LessonQuantity]:
    """Parse a list of `count` quantities."""
    if not isinstance(specs, ListWithLines) or len(specs) != count:
        raise LessonError(line, f"this compares a list of {count} quantities, got {specs!r:.60}")
    return [parse_quantity(spec, line_number) for spec, line_number in zip(specs, specs.lines, strict=True)]


@dataclass(frozen=True)
class LessonCondition:
    """A condition on a run by its name in `CONDITIONS`, with its arguments."""

    name: str
    arguments: Any

    def holds(self, context: QuantityContext) -> bool:
        """Return whether the run in the context meets the condition."""
        return bool(CONDITIONS[self.name][1](context, self.arguments))


def parse_condition(spec: Any, line: int) -> LessonCondition:
    """Parse a condition from a lesson's file, such as {more: [{of: tokens}, 4]}.

    Raises:
        LessonError: there is no such condition, or its arguments are of another kind.
    """
    if not isinstance(spec, MappingWithLines) or len(spec) != 1:
        raise LessonError(line, f"a condition is a mapping with one of {', '.join(CONDITIONS)}, got {spec!r:.60}")
    ((name, value),) = spec.items()
    if name not in CONDITIONS:
        raise LessonError(line, f"“{name}” is no condition; there are {', '.join(CONDITIONS)}")
    return LessonCondition(name, CONDITIONS[name][0](value, spec.lines[name]))


def _parse_conditions(specs: Any, line: int) -> list[LessonCondition]:
    if not isinstance(specs, ListWithLines):
        raise LessonError(line, f"this is a list of conditions, got {specs!r:.60}")
    return [parse_condition(spec, line_number) for spec, line_number in zip(specs, specs.lines, strict=True)]


def _parse_token(spec: Any, line: int) -> tuple[str, int]:
    """Parse a token's text and its rank."""
    if isinstance(spec, str):
        return spec, 1
    if not isinstance(spec, MappingWithLines):
        raise LessonError(line, f"a token is a text, or a mapping with “is” and “rank”, got {spec!r:.60}")
    validate_mapping_fields(spec, {"is": str, "rank": int}, ("is", "rank"))
    return spec["is"], spec["rank"]


def _has_token(context: QuantityContext, token: tuple[str, int]) -> bool:
    text, rank = token
    return context.trace.vocabulary[context.prediction.top(rank)[-1]] == text


def _is_about(context: QuantityContext, quantities: list[LessonQuantity]) -> bool:
    a, b, within = (quantity.evaluate(context) for quantity in quantities)
    return abs(a - b) <= within


CONDITIONS: dict[str, tuple[Callable[[Any, int], Any], Callable[[QuantityContext, Any], bool]]] = {
    "more": (parse_quantity_list, lambda look, pair: pair[0].evaluate(look) > pair[1].evaluate(look)),
    "less": (parse_quantity_list, lambda look, pair: pair[0].evaluate(look) < pair[1].evaluate(look)),
    "about": (partial(parse_quantity_list, count=3), _is_about),
    "token": (_parse_token, _has_token),
    "all": (_parse_conditions, lambda look, several: all(one.holds(look) for one in several)),
    "any": (_parse_conditions, lambda look, several: any(one.holds(look) for one in several)),
    "not": (parse_condition, lambda look, one: not one.holds(look)),
}
