"""Matching of weights by shape and order, if their names are unknown."""

import pytest
import torch

from explorer.diagnosis.match_weights import match_by_shape

WIDTH, HIDDEN_WIDTH, VOCAB_SIZE = 8, 20, 30
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]


def make_weights(feed_forward: list[tuple[int, int]], is_transposed: bool) -> dict[str, torch.Tensor]:
    """Return the weights of two layers with meaningless names; maps (in, out) if `is_transposed`, else (out, in)."""
    shapes = {"a": (VOCAB_SIZE, WIDTH)}
    for layer in range(2):
        maps = [(WIDTH, WIDTH)] * 4 + feed_forward
        shapes |= {f"b.{layer}.m{i}": shape[::-1] if is_transposed else shape for i, shape in enumerate(maps)}
        shapes |= {f"b.{layer}.n{i}": (WIDTH,) for i in range(2)}
    shapes |= {"y": (WIDTH,), "z": (VOCAB_SIZE, WIDTH)}
    return {name: torch.zeros(shape) for name, shape in shapes.items()}


@pytest.mark.parametrize("is_turned", [False, True], ids=["(out, in)", "(in, out)"])
@pytest.mark.parametrize(
    ("feed_forward", "ours"),
    [
        ([(HIDDEN_WIDTH, WIDTH), (WIDTH, HIDDEN_WIDTH)], ["up_proj", "down_proj"]),
        ([(HIDDEN_WIDTH, WIDTH), (HIDDEN_WIDTH, WIDTH), (WIDTH, HIDDEN_WIDTH)], ["gate_proj", "up_proj", "down_proj"]),
    ],
    ids=["two maps", "three"],
)
def test_maps_are_matched_by_shape_and_order(feed_forward, ours, is_turned):
    matched = match_by_shape(make_weights(feed_forward, is_turned))
    assert (matched["a"], matched["y"], matched["z"]) == (("token_embedding",), ("final_norm",), ("lm_head",))
    for layer in range(2):
        names = [f"attn.{map_name}" for map_name in ATTENTION] + [f"ffn.{map_name}" for map_name in ours]
        assert [matched[f"b.{layer}.m{i}"] for i in range(len(names))] == [(f"blocks.{layer}.{n}",) for n in names]
        assert [matched[f"b.{layer}.n{i}"] for i in range(2)] == [
            (f"blocks.{layer}.{n}_norm",) for n in ("attn", "ffn")
        ]
