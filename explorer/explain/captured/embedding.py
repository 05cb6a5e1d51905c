"""Where vectors begin: token embeddings, positions, and the angles of rotary positions."""

import math
from dataclasses import dataclass

import numpy as np

from explorer.architecture import embedding
from explorer.explain.captured.edits import first_position, theta
from explorer.explain.notation import factor, number
from explorer.explain.source import Source
from explorer.explain.working import Index, Working, take
from explorer.language import N_, _, look_up
from explorer.tracing.trace import Trace
from model.config import ModelConfig

TABLE, EMBED = "token_embedding.weight", "embed"
# whether positions are added, and whether the row is scaled -> the formula
EMBEDDED = {
    (False, False): N_("{symbol} = row of the token’s id"),
    (False, True): N_("{symbol} = row of the token’s id · {factor}"),
    (True, False): N_("{symbol} = row of the token’s id + position_embed"),
    (True, True): N_("{symbol} = row of the token’s id · {factor} + position_embed"),
}


@dataclass(frozen=True)
class Embedded:
    """The token's row of the embedding table, times a number where the model scales it, plus its position's vector."""

    positions: bool
    source: Source

    def working(self, trace: Trace, at: Index) -> Working:
        token, dim = at
        times, scaled = embedding.factor_in_numbers(trace.config), trace.config.embedding_scale != 1
        row, read = take(trace, TABLE, np.array(trace.token_ids)[token], dim)
        value, inputs = row * trace.config.embedding_scale, (read,)
        sizes, position = np.abs(value), None
        if self.positions:
            position, from_positions = take(trace, "position_embed", token, dim)
            value, inputs = value + position, (read, from_positions)
            sizes = sizes + np.abs(position)

        def numbers() -> str:
            terms = f"{factor(row)} · {times}" if scaled else number(row)
            terms += "" if position is None else f" + {factor(position)}"
            return f"{EMBED} = {terms}{f' = {number(value)}' * (scaled or self.positions)}"

        symbols = look_up(EMBEDDED[self.positions, scaled], symbol=EMBED, factor=embedding.factor(trace.config))
        return Working(symbols, numbers, value, inputs, sizes)


@dataclass(frozen=True)
class Learned:
    """The position's row of a table."""

    source: Source

    def working(self, trace: Trace, at: Index) -> Working:
        token, dim = at
        value, read = take(trace, "position_embedding.weight", standing(trace)[token], dim)
        return Working(
            _("position_embed = row of the position"),
            lambda: f"position_embed = {number(value)}",
            value,
            (read,),
            np.abs(value),
        )


@dataclass(frozen=True)
class Waves:
    """Sinusoidal positions: dimension 2i of position m is sin(m / 10000^(2i/D)), dimension 2i + 1 its cosine."""

    source: Source

    def working(self, trace: Trace, at: Index) -> Working:
        token, dim = at
        d, position = trace.config.d_model, standing(trace)[token]
        dims = np.arange(d)[dim]
        angles = np.divide.outer(position, 10000.0 ** (dims // 2 * 2 / d))
        value = np.where(dims % 2, np.cos(angles), np.sin(angles))

        def numbers() -> str:
            return f"position_embed = {wave}({position} / 10000^({dims // 2 * 2}/{d})) = {number(value)}"

        wave = "cos" if np.all(dims % 2) else "sin"
        symbols = _("position_embed = {wave}(m / 10000^(2i/D)), m the position, i = {i}", wave=wave, i=dims // 2)
        return Working(symbols, numbers, value, (), np.ones_like(value))  # shifted, made of a sine and a cosine


@dataclass(frozen=True)
class Angles:
    """Rotary positions: pair i of position m turns by m ω, ω = θ^(−2i/d), slowed where the config says so; of models
    that turn r dimensions of a head alone, ω = θ^(−2i/r), and the pairs after those stand still.

    Attributes:
        local: whether they are those of layers in which a query sees a window, with a θ of their own.
    """

    source: Source
    local: bool = False

    def working(self, trace: Trace, at: Index) -> Working:
        token, pair = at
        config, position = trace.config, standing(trace)[token]
        base, scaling = (config.local_rope_theta, None) if self.local else (theta(trace), config.rope_scaling)
        omega = np.array([speed(config, base, i, not self.local) for i in range(config.d_head // 2)])[pair]
        value = np.multiply.outer(position, omega)
        r = config.turned_dims
        symbols = _("angle = m · ω in radians, m the position, ω = θ^(−2·pair/d)")
        if r < config.d_head:
            symbols = _(
                "angle = m · ω in radians, m the position, ω = θ^(−2·pair/{r}), or 0 from pair {first} on",
                r=r,
                first=r // 2,
            )
        if scaling:
            symbols = _("{symbols}, slowed ({kind})", symbols=symbols, kind=scaling.kind)

        def numbers() -> str:
            if pair >= r // 2:
                return _("angle = {position} · 0 = 0: this pair stands still", position=position)
            plain = f"{position} · {base:g}^(−{2 * pair}/{r})"
            result = f"{position} · {number(omega)} = {number(value)}"
            if scaling:
                return _("angle = {plain}, slowed ({kind}) = {result}", plain=plain, kind=scaling.kind, result=result)
            return _("angle = {plain} = {result}", plain=plain, result=result)

        return Working(symbols, numbers, value, (), np.abs(value))


def standing(trace: Trace) -> np.ndarray:
    """(T,) where each token counts as standing."""
    return first_position(trace) + np.arange(len(trace))


def speed(config: ModelConfig, theta: float, pair: int, slows: bool = True) -> float:
    """ω of a pair, radians a position, slowed if the config says so and `slows`."""
    d, scaling = config.turned_dims, config.rope_scaling if slows else None
    if pair >= d // 2:
        return 0.0
    if scaling is None:
        return theta ** (-2 * pair / d)
    if scaling.kind == "linear":
        return theta ** (-2 * pair / d) / scaling.factor
    if scaling.kind == "ntk":  # the base grows so that the last pair, d − 2, is slowed by the whole factor
        return 1.0 if pair == 0 else (theta * scaling.factor ** (d / (d - 2))) ** (-2 * pair / d)
    plain = theta ** (-2 * pair / d)
    if scaling.kind == "longrope":
        return plain / scaling.pair_factors[pair]
    if scaling.kind == "yarn":
        ends = [
            d / 2 * math.log(scaling.original_context_length / (2 * math.pi * turns), theta)
            for turns in (scaling.high_frequency_factor, scaling.low_frequency_factor)
        ]
        first, last = (math.floor(ends[0]), math.ceil(ends[1])) if scaling.rounds_ramp else ends
        first, last = max(0, first), min(d - 1, last)
        slow = float(pair > first) if first == last else min(1.0, max(0.0, (pair - first) / (last - first)))
        return plain * (1 - slow) + plain / scaling.factor * slow
    turns = scaling.original_context_length * plain / (2 * math.pi)
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    fast = min(1.0, max(0.0, (turns - low) / (high - low)))
    return plain * fast + plain / scaling.factor * (1 - fast)
