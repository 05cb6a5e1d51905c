"""Positions: sinusoidal position embeddings, rotary ones (RoPE), their scaling, and the layout of rotated rows."""

import math

import torch
from torch import Tensor, nn

from model.config import ModelConfig, RopeScaling
from model.layers.basic_layers import Tap


def position_angles(positions: Tensor, frequencies: Tensor) -> Tensor:
    """Return position times frequency in float64: (..., T) and (F,) -> (..., T, F), in radians.

    bfloat16 has 8 significant bits: from position 256 on, neighbours would get the same angle. The CPU computes for
    devices without float64, such as Apple's GPUs.
    """
    positions = positions if positions.is_cuda or positions.is_meta else positions.cpu()
    return positions.double()[..., None] * frequencies.to(positions.device)


class SinusoidalPositionalEmbedding(nn.Module):
    """Sinusoidal position vectors, to be added to the tokens' embeddings.

    Dimension 2i at position m is sin(m / 10000²ⁱᐟᴰ), dimension 2i + 1 is cos of the same angle (Vaswani et al.
    2017, §3.5).

    Args:
        d_model: width of the vectors, even.

    Raises:
        ValueError: `d_model` is odd, so that a sine has no cosine.
    """

    def __init__(self, d_model: int):
        super().__init__()
        if d_model % 2:
            raise ValueError(f"sinusoidal positions pair sines with cosines: d_model must be even, got {d_model}")
        exponents = torch.arange(0, d_model, 2, dtype=torch.float64, device="cpu") / d_model
        self.frequencies = 10000**-exponents  # (D / 2,)

    def forward(self, positions: Tensor) -> Tensor:
        angles = position_angles(positions, self.frequencies)  # (..., T) -> (..., T, D / 2)
        return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2).to(positions.device, torch.float32)


def rotary_frequencies(
    theta: float, d_head: int, scaling: RopeScaling | None = None, rotary_dim: int | None = None
) -> Tensor:
    """Return ωᵢ = θ⁻²ⁱᐟʳ, slowed by `scaling`: radians per position of every pair, (d_head / 2,) in float64.

    r = `rotary_dim` is the number of rotated dimensions; None means all. The pairs after the first r / 2 are not
    rotated: ω = 0 (GPT-NeoX: Black et al. 2022, §2.1.1).
    """
    rotated = scaled_frequencies(theta, rotary_dim or d_head, scaling)
    return torch.cat((rotated, rotated.new_zeros(d_head // 2 - len(rotated))))


def rotary_attention_factors(d_head: int, scaling: RopeScaling | None = None, rotary_dim: int | None = None) -> Tensor:
    """Return the factor that multiplies each rotated pair, (d_head / 2,) in float64: 1 for pairs not rotated."""
    scales = torch.ones(d_head // 2, dtype=torch.float64, device="cpu")  # not every device has float64
    scales[: (rotary_dim or d_head) // 2] = scaling.attention_factor if scaling else 1.0
    return scales


def scaled_frequencies(theta: float, d_head: int, scaling: RopeScaling | None) -> Tensor:
    """Return ωᵢ = θ⁻²ⁱᐟᵈ, slowed by `scaling`, where all d = `d_head` dimensions are rotated."""
    exponents = torch.arange(0, d_head, 2, dtype=torch.float64, device="cpu") / d_head
    frequencies = theta**-exponents
    if scaling is None:
        return frequencies
    if scaling.kind == "linear":
        return frequencies / scaling.factor
    if scaling.kind == "ntk":
        last = max(d_head - 2, 1) / d_head  # the last exponent; of a single pair any will do: its speed 1 stays
        return (theta * scaling.factor ** (1 / last)) ** -exponents
    if scaling.kind == "longrope":
        return frequencies / torch.tensor(scaling.pair_factors, dtype=torch.float64, device="cpu")
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    if scaling.kind == "yarn":
        unscaled_fraction = 1 - yarn_ramp(theta, d_head, scaling)
    else:
        turns = scaling.original_context_length * frequencies / (2 * math.pi)
        unscaled_fraction = ((turns - low) / (high - low)).clamp(0, 1)  # 1 for the fast, 0 for the slow
    return unscaled_fraction * frequencies + (1 - unscaled_fraction) * frequencies / scaling.factor


def yarn_ramp(theta: float, d_head: int, scaling: RopeScaling) -> Tensor:
    """Return YaRN's ramp (d_head / 2,): 0 at the pair of β_fast turns, 1 at the pair of β_slow turns.

    Turns are counted over the original context. Peng et al. 2023, §3.2, but linear in the pair's index instead of
    its wavelength, as in their code.
    """

    def pair_index(turns: float) -> float:
        return d_head * math.log(scaling.original_context_length / (turns * 2 * math.pi)) / (2 * math.log(theta))

    first, last = pair_index(scaling.high_frequency_factor), pair_index(scaling.low_frequency_factor)
    if scaling.rounds_ramp:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, d_head - 1)
    pairs = torch.arange(d_head // 2, dtype=torch.float64, device="cpu")
    return ((pairs - first) / (last - first or 0.001)).clamp(0, 1)  # never divided by 0


class RotaryPositionalEmbedding(nn.Module):
    """Rotation of each pair of dimensions of a query or key by an angle that grows with its position.

    Pair i of a vector at position m is rotated by the angle m · θ⁻²ⁱᐟʳ, r = d if all dimensions are rotated, so
    that the product of a rotated query and a rotated key depends on the two positions only through their
    difference (Su et al. 2021, eq. 34).

    Args:
        theta: the base θ; larger means slower rotation.
        d_head: width of a head, even.
        scaling: of the frequencies for longer contexts.
        rotary_dim: r, number of rotated dimensions; None: all.

    Raises:
        ValueError: `d_head` is odd, so that it has no pairs.
    """

    def __init__(self, theta: float, d_head: int, scaling: RopeScaling | None = None, rotary_dim: int | None = None):
        super().__init__()
        if d_head % 2:
            raise ValueError(f"RoPE rotates pairs of dimensions: d_head must be even, got {d_head}")
        self.d_head, self.scaling, self.rotary_dim = d_head, scaling, rotary_dim
        self.frequencies = rotary_frequencies(theta, d_head, scaling, rotary_dim)  # (F,), F = d_head / 2
        self.angles = Tap()
        self.scales = None  # (F,) where turned pairs are multiplied as well
        if scaling and scaling.attention_factor != 1:
            self.scales = rotary_attention_factors(d_head, scaling, rotary_dim).float()

    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines (..., T, F) of the angles of integer positions (..., T), times `scales`."""
        angles = position_angles(positions, self.frequencies).to(positions.device, torch.float32)  # (..., T, F)
        angles = self.angles(angles)
        cos, sin = angles.cos(), angles.sin()
        if self.scales is None:
            return cos, sin
        scales = self.scales.to(angles.device)
        return cos * scales, sin * scales


def rotate_adjacent(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs (x₀, x₁), (x₂, x₃), … of the last axis: (..., T, d) with (..., T, d/2) -> (..., T, d).

    If x has fewer bits than the cosines and sines, only the result is rounded.
    """
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)  # (..., T, F, 2)
    return pairs.flatten(-2).to(x.dtype)  # (..., T, d)


def rotate_half_split(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs (xᵢ, xᵢ₊₍d/2₎), as GPT-NeoX and Hugging Face's Llama do; shapes as in `rotate_adjacent`."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)


ROTATIONS = {"adjacent": rotate_adjacent, "half_split": rotate_half_split}


def reorder_rotary_rows(weight: Tensor, config: ModelConfig) -> Tensor:
    """Reorder the rows of q_proj or k_proj, or of their biases, to our layout: (heads · d, …), same shape.

    If only r dimensions of a head are rotated, the file has them first, in two halves, then the others; we have
    them first in each half of all d. Scores do not depend on the order of dimensions.
    """
    num_rotated, num_fixed = config.num_rotary_dims // 2, (config.d_head - config.num_rotary_dims) // 2
    first, second, rest, last = weight.unflatten(0, (-1, config.d_head)).split(
        (num_rotated, num_rotated, num_fixed, num_fixed), dim=1
    )
    return torch.cat((first, rest, second, last), dim=1).flatten(0, 1)


def convert_to_half_split(weight: Tensor, d_head: int) -> Tensor:
    """Reorder (H d, …) from adjacent to half-split rotary pairs: each head's even rows, then its odd ones.

    Pairs that were neighbours are then d/2 apart.
    """
    heads = weight.reshape(-1, d_head // 2, 2, *weight.shape[1:])  # (H, d/2, 2, …)
    return heads.transpose(1, 2).reshape(weight.shape)


def convert_to_adjacent(weight: Tensor, d_head: int) -> Tensor:
    """Reorder (H d, …) from half-split to adjacent rotary pairs, the inverse of `convert_to_half_split`."""
    heads = weight.reshape(-1, 2, d_head // 2, *weight.shape[1:])  # (H, 2, d/2, …)
    return heads.transpose(1, 2).reshape(weight.shape)
