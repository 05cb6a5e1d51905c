"""Where vectors begin: token embeddings, positions, and the angles of rotary positions."""

import math
from dataclasses import dataclass

import numpy as np

from explorer.explain.captured.changes import first_position, theta
from explorer.explain.source import Source
from explorer.explain.working import Working, factor, number, take, values
from explorer.tracing.trace import Trace
from model.config import ModelConfig

TABLE = "token_embedding.weight"


@dataclass(frozen=True)
class Embedded:
    """The token's row of the embedding table, times √D where the model scales it, plus its position's vector."""

    scaled: bool
    positions: bool
    source: Source

    @property
    def names(self) -> tuple[str, ...]:
        return (TABLE, "position_embed") if self.positions else (TABLE,)

    def array(self, trace: Trace) -> np.ndarray:
        rows = self.rows(trace)
        return rows + values(trace, "position_embed") if self.positions else rows

    def sizes(self, trace: Trace) -> np.ndarray:
        rows = np.abs(self.rows(trace))
        return rows + np.abs(values(trace, "position_embed")) if self.positions else rows

    def rows(self, trace: Trace) -> np.ndarray:
        rows = trace.weights[TABLE][list(trace.token_ids)].astype(np.float64)
        return rows * math.sqrt(trace.config.d_model) if self.scaled else rows

    def working(self, trace: Trace, index: tuple[int, ...]) -> Working:
        token, dim = index
        row, read = take(trace, TABLE, trace.token_ids[token], dim)
        value, inputs = float(row), [read]
        symbols, numbers = "row of the token’s id", number(row)
        if self.scaled:
            value *= math.sqrt(trace.config.d_model)
            symbols, numbers = f"{symbols} · √D", f"{factor(row)} · √{trace.config.d_model}"
        if self.positions:
            position, from_positions = take(trace, "position_embed", token, dim)
            value += float(position)
            symbols, numbers = f"{symbols} + position_embed", f"{numbers} + {factor(position)}"
            inputs.append(from_positions)
        result = f" = {number(value)}" if self.scaled or self.positions else ""
        return Working(f"embed = {symbols}", f"embed = {numbers}{result}", value, tuple(inputs))


@dataclass(frozen=True)
class Learned:
    """The position's row of a table."""

    source: Source
    names: tuple[str, ...] = ("position_embedding.weight",)

    def array(self, trace: Trace) -> np.ndarray:
        return values(trace, *self.names)[standing(trace)]

    def sizes(self, trace: Trace) -> np.ndarray:
        return np.abs(self.array(trace))

    def working(self, trace: Trace, index: tuple[int, ...]) -> Working:
        value, read = take(trace, *self.names, first_position(trace) + index[0], index[1])
        symbols = "position_embed = row of the position"
        return Working(symbols, f"position_embed = {number(value)}", float(value), (read,))


@dataclass(frozen=True)
class Waves:
    """Sinusoidal positions: dimension 2i of position m is sin(m / 10000^(2i/D)), dimension 2i + 1 its cosine."""

    source: Source
    names: tuple[str, ...] = ()

    def array(self, trace: Trace) -> np.ndarray:
        d = trace.config.d_model
        angles = standing(trace)[:, None] / 10000.0 ** (np.arange(0, d, 2) / d)  # (T, D / 2)
        return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(trace), d)

    def sizes(self, trace: Trace) -> np.ndarray:
        return np.ones((len(trace), trace.config.d_model))  # shifted, each is made of a sine and a cosine

    def working(self, trace: Trace, index: tuple[int, ...]) -> Working:
        position, dim = first_position(trace) + index[0], index[1]
        d, wave = trace.config.d_model, ("sin", "cos")[dim % 2]
        value = getattr(math, wave)(position / 10000.0 ** (dim // 2 * 2 / d))
        symbols = f"position_embed = {wave}(m / 10000^(2i/D)), m the position, i = {dim // 2}"
        numbers = f"position_embed = {wave}({position} / 10000^({dim // 2 * 2}/{d})) = {number(value)}"
        return Working(symbols, numbers, value, ())


@dataclass(frozen=True)
class Angles:
    """Rotary positions: pair i of position m turns by m ω, ω = θ^(−2i/d), slowed where the config says so."""

    source: Source
    names: tuple[str, ...] = ()

    def array(self, trace: Trace) -> np.ndarray:
        speeds = [speed(trace.config, theta(trace), pair) for pair in range(trace.config.d_head // 2)]
        return np.outer(standing(trace), speeds)

    def sizes(self, trace: Trace) -> np.ndarray:
        return np.abs(self.array(trace))

    def working(self, trace: Trace, index: tuple[int, ...]) -> Working:
        position, pair = first_position(trace) + index[0], index[1]
        config = trace.config
        omega = speed(config, theta(trace), pair)
        slowed = f", slowed ({config.rope_scaling.kind})" if config.rope_scaling else ""
        plain = f"{theta(trace):g}^(−{2 * pair}/{config.d_head})"
        return Working(
            f"angle = m · ω in radians, m the position, ω = θ^(−2·pair/d){slowed}",
            f"angle = {position} · {plain}{slowed} = {position} · {number(omega)} = {number(position * omega)}",
            position * omega,
            (),
        )


def standing(trace: Trace) -> np.ndarray:
    """(T,) where each token counts as standing."""
    return first_position(trace) + np.arange(len(trace))


def speed(config: ModelConfig, theta: float, pair: int) -> float:
    """ω of a pair, radians a position."""
    d, scaling = config.d_head, config.rope_scaling
    if scaling is None:
        return theta ** (-2 * pair / d)
    if scaling.kind == "linear":
        return theta ** (-2 * pair / d) / scaling.factor
    if scaling.kind == "ntk":  # the base grows so that the last pair, d − 2, is slowed by the whole factor
        return 1.0 if pair == 0 else (theta * scaling.factor ** (d / (d - 2))) ** (-2 * pair / d)
    plain = theta ** (-2 * pair / d)
    turns = scaling.original_context_length * plain / (2 * math.pi)
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    fast = min(1.0, max(0.0, (turns - low) / (high - low)))
    return plain * fast + plain / scaling.factor * (1 - fast)
