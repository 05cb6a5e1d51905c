"""The numbers themselves: each a function of a look, and of its own arguments."""

import math
from collections.abc import Callable

import numpy as np

from explorer.analysis.attribution import Attribution, attribution
from explorer.analysis.embedding import embedding_parts
from explorer.analysis.heads import SCORE_NAMES, head_scores
from explorer.analysis.next_token import NextToken, next_token
from explorer.analysis.training import loss_of_text
from explorer.lessons.course.look import Look
from model.counting import parameter_table

PARTS = {  # of a model -> beginnings of the names of their rows in a table of parameters
    "all": ("",),
    "embedding": ("token embedding", "position embedding"),
    "attention": ("attention",),
    "feed_forward": ("feed-forward",),
    "norms": ("norms", "query and key norms"),
}
SIZES = ("vocab_size", "context_length", "d_model", "d_head", "d_ff", "num_layers", "num_heads")


def token_id(look: Look, token: str = "", rank: int = 0) -> int:
    """Of a token by its text, or by its rank after the chosen one.

    Raises:
        ValueError: the model has no such token.
    """
    if rank:
        return int(prediction(look).top(rank)[-1])
    if token not in look.trace.vocabulary:
        raise ValueError(f"the model has no token {token!r:.60}")
    return list(look.trace.vocabulary).index(token)


def prediction(look: Look) -> NextToken:
    """After the chosen token, with the settings of the state."""
    s, run = look.settings, look.run
    start = run.dropped + len(run.token_ids) - len(look.trace)
    limits = {"top_p": s.top_p, "min_p": s.min_p, "repetition_penalty": s.repetition_penalty}
    place = {"seed": s.seed, "start": start}
    return next_token(look.trace, look.selection.query, s.temperature, s.top_k, **limits, **place)


def _number(look: Look, value: float) -> float:
    return value


def _probability(look: Look, token: str = "", rank: int = 0) -> float:
    return prediction(look).plain[token_id(look, token, rank)]


def _chance(look: Look, token: str = "", rank: int = 0) -> float:
    return prediction(look).sampled[token_id(look, token, rank)]


def _logit(look: Look, token: str = "", rank: int = 0) -> float:
    return look.trace["logits"][look.selection.query, token_id(look, token, rank)]


def _surprisal(look: Look, token: str = "", rank: int = 0) -> float:
    return -math.log2(_probability(look, token, rank))


def _rank(look: Look, token: str) -> float:
    return prediction(look).rank(token_id(look, token))


def _entropy(look: Look) -> float:
    return prediction(look).plain_entropy


def _candidates(look: Look) -> float:
    return float((prediction(look).sampled > 0).sum())


def _of_cell(name: str) -> Callable[[Look], float]:
    def cell(look: Look) -> float:
        s = look.selection
        return look.trace[f"blocks.{s.layer}.attn.{name}"][s.head, s.query, s.key]

    return cell


def _head_score(look: Look, score: str) -> float:
    s = look.selection
    return _scores(look, score)[s.layer, s.head]


def _most_head_score(look: Look, score: str) -> float:
    return np.nanmax(_scores(look, score))


def _heads_above(look: Look, score: str, least: float) -> float:
    return float((_scores(look, score) >= least).sum())


def _scores(look: Look, score: str) -> np.ndarray:
    known = vars(look).setdefault("head_scores", {})
    if score not in known:
        known[score] = np.nan_to_num(head_scores(look.trace, score))
    return known[score]


def _vector(look: Look) -> np.ndarray:
    """At the chosen token, of the chosen head where the value has heads."""
    s, value = look.selection, look.trace[look.selection.tap]
    if value.ndim == 3:
        value = look.trace.of_head(s.tap, s.head)
    return value[s.query].astype(np.float64)


def _norm(look: Look) -> float:
    return float(np.linalg.norm(_vector(look)))


def _rms(look: Look) -> float:
    return float(np.sqrt(np.mean(_vector(look) ** 2)))


def _element(look: Look) -> float:
    return float(_vector(look)[look.selection.dim])


def _positive(look: Look) -> float:
    return float((_vector(look) > 0).mean())


def _cosine(look: Look, a: str, b: str) -> float:
    table = look.trace.weights["token_embedding.weight"]
    x, y = (table[token_id(look, token)].astype(np.float64) for token in (a, b))
    return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))


def _head_adds(look: Look, token: str = "", rank: int = 0) -> float:
    s = look.selection
    return _added(look, token, rank).heads[s.layer, s.head]


def _feed_forward_adds(look: Look, token: str = "", rank: int = 0) -> float:
    return _added(look, token, rank).feed_forward[look.selection.layer]


def _added(look: Look, token: str, rank: int) -> Attribution:
    return attribution(look.trace, look.selection.query, token_id(look, token, rank))


def _tokens(look: Look) -> float:
    return len(look.trace)


def _loss(look: Look) -> float:
    return loss_of_text(look.trace)


def _position_share(look: Look) -> float:
    found = embedding_parts(look.trace, look.selection.query)
    if found.position is None:
        return 0.0
    size, positions = (float(np.linalg.norm(part)) for part in (found.row * found.scale, found.position))
    return positions / (size + positions)


def _parameters(look: Look, part: str = "all") -> float:
    rows = parameter_table(look.trace.config)
    return float(sum(row.count for row in rows if row.component.startswith(PARTS[part])))


def _size(look: Look, name: str) -> float:
    return float(getattr(look.trace.config, name))


def _ln_vocabulary(look: Look) -> float:
    return math.log(look.trace.config.vocab_size)


MEASURES: dict[str, Callable[..., float]] = {
    "number": _number,
    "probability": _probability,
    "chance": _chance,
    "logit": _logit,
    "surprisal": _surprisal,
    "rank": _rank,
    "entropy": _entropy,
    "candidates": _candidates,
    "score": _of_cell("scores"),
    "weight": _of_cell("pattern"),
    "head_score": _head_score,
    "most_head_score": _most_head_score,
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
OF_A_TOKEN = ("probability", "chance", "logit", "surprisal", "head_adds", "feed_forward_adds")
CHOICES = {"score": tuple(SCORE_NAMES), "part": tuple(PARTS), "name": SIZES}  # of arguments that are words
