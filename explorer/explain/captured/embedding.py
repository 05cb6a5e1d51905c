"""Formulas of token embeddings, position embeddings and rotary angles."""

import math
from dataclasses import dataclass

import numpy as np

from explorer.architecture.formulas import embedding_scale_formula, embedding_scale_in_numbers
from explorer.explain.captured.formulas import first_token_position, rope_theta
from explorer.explain.derivation import Calculation, Index, read_input
from explorer.explain.notation import format_factor, format_six_digits
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from model.config import ModelConfig

TABLE, EMBED = "token_embedding.weight", "embed"
# whether positions are added, and whether the row is scaled -> the formula
EMBEDDING_FORMULAS = {
    (False, False): N_("{symbol} = row of the token’s id"),
    (False, True): N_("{symbol} = row of the token’s id · {factor}"),
    (True, False): N_("{symbol} = row of the token’s id + position_embed"),
    (True, True): N_("{symbol} = row of the token’s id · {factor} + position_embed"),
}


@dataclass(frozen=True)
class EmbeddingFormula:
    """The token's row of the embedding table, times the embedding scale, plus the position embedding."""

    positions: bool
    source: SourceLine

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        token, dim = index
        factor_text, scaled = (
            embedding_scale_in_numbers(trace.config),
            trace.config.embedding_scale != 1,
        )
        row, read = read_input(trace, TABLE, np.array(trace.token_ids)[token], dim)
        value, inputs = row * trace.config.embedding_scale, (read,)
        sizes, position = np.abs(value), None
        if self.positions:
            position, from_positions = read_input(trace, "position_embed", token, dim)
            value, inputs = value + position, (read, from_positions)
            sizes = sizes + np.abs(position)

        def numbers() -> str:
            terms = f"{format_factor(row)} · {factor_text}" if scaled else format_six_digits(row)
            terms += "" if position is None else f" + {format_factor(position)}"
            return f"{EMBED} = {terms}{f' = {format_six_digits(value)}' * (scaled or self.positions)}"

        symbols = translate(
            EMBEDDING_FORMULAS[self.positions, scaled],
            symbol=EMBED,
            factor=embedding_scale_formula(trace.config),
        )
        return Calculation(symbols, numbers, value, inputs, sizes)


@dataclass(frozen=True)
class LearnedPositionFormula:
    """Learned position embeddings: the position's row of a table."""

    source: SourceLine

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        token, dim = index
        value, read = read_input(trace, "position_embedding.weight", token_positions(trace)[token], dim)
        return Calculation(
            _("position_embed = row of the position"),
            lambda: f"position_embed = {format_six_digits(value)}",
            value,
            (read,),
            np.abs(value),
        )


@dataclass(frozen=True)
class SinusoidalPositionFormula:
    """Sinusoidal positions: dimension 2i of position m is sin(m / 10000^(2i/D)), dimension 2i + 1 its cosine."""

    source: SourceLine

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        token, dim = index
        d, position = trace.config.d_model, token_positions(trace)[token]
        dims = np.arange(d)[dim]
        angles = np.divide.outer(position, 10000.0 ** (dims // 2 * 2 / d))
        value = np.where(dims % 2, np.cos(angles), np.sin(angles))

        def numbers() -> str:
            return f"position_embed = {wave}({position} / 10000^({dims // 2 * 2}/{d})) = {format_six_digits(value)}"

        wave = "cos" if np.all(dims % 2) else "sin"
        symbols = _("position_embed = {wave}(m / 10000^(2i/D)), m the position, i = {i}", wave=wave, i=dims // 2)
        return Calculation(symbols, numbers, value, (), np.ones_like(value))  # shifted, made of a sine and a cosine


@dataclass(frozen=True)
class RotaryAngleFormula:
    """Rotary angles: pair i of position m is rotated by m ω, ω = θ^(−2i/d), scaled as in the config.

    In models that rotate only r dimensions of a head, ω = θ^(−2i/r), and later pairs are not rotated.

    Attributes:
        local: whether these are the angles of sliding-window layers, which have their own θ.
    """

    source: SourceLine
    local: bool = False

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        token, pair = index
        config, position = trace.config, token_positions(trace)[token]
        base, scaling = (config.local_rope_theta, None) if self.local else (rope_theta(trace), config.rope_scaling)
        omega = np.array([angular_frequency(config, base, i, not self.local) for i in range(config.d_head // 2)])[pair]
        value = np.multiply.outer(position, omega)
        r = config.num_rotary_dims
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
            result = f"{position} · {format_six_digits(omega)} = {format_six_digits(value)}"
            if scaling:
                return _("angle = {plain}, slowed ({kind}) = {result}", plain=plain, kind=scaling.kind, result=result)
            return _("angle = {plain} = {result}", plain=plain, result=result)

        return Calculation(symbols, numbers, value, (), np.abs(value))


def token_positions(trace: Trace) -> np.ndarray:
    """Return the position of each token, (T,)."""
    return first_token_position(trace) + np.arange(len(trace))


def angular_frequency(config: ModelConfig, theta: float, pair: int, slows: bool = True) -> float:
    """Return ω of a pair in radians per position, scaled as in the config if `slows`."""
    d, scaling = config.num_rotary_dims, config.rope_scaling if slows else None
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
        ramp_ends = [
            d / 2 * math.log(scaling.original_context_length / (2 * math.pi * rotations), theta)
            for rotations in (scaling.high_frequency_factor, scaling.low_frequency_factor)
        ]
        first, last = (math.floor(ramp_ends[0]), math.ceil(ramp_ends[1])) if scaling.rounds_ramp else ramp_ends
        first, last = max(0, first), min(d - 1, last)
        slow = float(pair > first) if first == last else min(1.0, max(0.0, (pair - first) / (last - first)))
        return plain * (1 - slow) + plain / scaling.factor * slow
    rotations = scaling.original_context_length * plain / (2 * math.pi)
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    fast = min(1.0, max(0.0, (rotations - low) / (high - low)))
    return plain * fast + plain / scaling.factor * (1 - fast)
