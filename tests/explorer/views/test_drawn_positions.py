"""Rotations as the browser shows them: hands of clocks, pairs, distances and angles."""

import numpy as np
import pytest

from explorer.views import VIEWS
from tests.drawn import Picture, tells
from tests.look import Look, Seen, at_tokens, check

pytestmark = pytest.mark.parametrize("style", ["rope", "grouped"])


@pytest.fixture
def seen(look, style) -> Look:
    return look(style)


@pytest.fixture
def picture(seen):
    """The picture of that name, in whatever tab it is."""

    def picture(name: str) -> Picture:
        return seen.picture(next(view.name for view in VIEWS for panel in view.panels if panel.name == name), name)

    return picture


def speeds(look: Look) -> np.ndarray:
    """(F,) radians a position."""
    config = look.trace.config
    slower = config.rope_scaling.factor if config.rope_scaling else 1
    return config.rope_theta ** (-2 * np.arange(config.d_head // 2) / config.d_head) / slower


def pairs(look: Look, vector: str, position: int) -> np.ndarray:
    """(F,) complex: the two numbers of each pair of the chosen head's vector at a position."""
    values = look.trace.of_head(f"blocks.1.attn.{vector}", 2)[position].astype(float)
    halves = (values[::2], values[1::2]) if look.trace.config.rope_layout == "adjacent" else np.split(values, 2)
    return halves[0] + 1j * halves[1]


def by_pair(look: Look, distance: int) -> np.ndarray:
    """(F,) what each pair of q and k, before their rotation, adds to the score at a distance."""
    q, k = (pairs(look, f"{name}{'_norm' * look.trace.config.qk_norm}", at) for name, at in (("q", 9), ("k", 4)))
    return (q * k.conj() * np.exp(1j * distance * speeds(look))).real / look.trace.config.divisor


def test_every_pair_adds_its_share_of_the_score(seen, picture):
    shares = by_pair(seen, 5)
    check(picture("pairs").points(), [[Seen(value, f"pair {i}\n") for i, value in enumerate(shares)]])
    assert shares.sum() == pytest.approx(seen.trace["blocks.1.attn.scores"][2, 9, 4], abs=1e-4)


def test_every_distance_has_its_score(seen, picture):
    scores = [by_pair(seen, n).sum() for n in range(seen.trace.config.context_length)]
    line = [Seen(score, f"distance {n}\n") for n, score in enumerate(scores)]
    check(picture("distances").points(), [line, line[5:6]])


def test_every_pair_has_its_wavelength(seen, picture):
    turns = 2 * np.pi / speeds(seen)
    check(picture("wavelengths").points(), [[Seen(turn, f"pair {i}\n") for i, turn in enumerate(turns)]])


def test_every_position_and_pair_has_its_angle(seen, picture):
    drawn = picture("angles")
    angles = np.outer(np.arange(12), speeds(seen))
    names = [row.words for row in at_tokens(seen, "position", range(12), None)]
    assert len(points := drawn.points()) == angles.size
    for p in points:
        angle = angles[int(p.y), int(p.x)]
        assert np.exp(1j * p.z) == pytest.approx(np.exp(1j * angle), abs=1e-4) and abs(p.z) <= np.pi + 1e-6
        assert f"{names[int(p.y)]}, pair {p.x}\n" in p.told and tells(p.told, angle)
        assert p.change["query"] == p.y


def test_hands_point_where_the_pairs_do(seen, picture):
    drawn = picture("clocks")
    tips = [part for part in drawn.parts if part.get("mode") == "markers"]
    centres = np.array([note["x"] + 1j * (note["y"] - 1.2) for note in drawn.layout["annotations"]])
    points = iter(drawn.points())
    for tip, (vector, at, turned) in zip(
        tips, [(v, at, turned) for v, at in (("q", 9), ("k", 4)) for turned in ("", "_rot")], strict=True
    ):
        before, values = pairs(seen, vector, at), pairs(seen, f"{vector}{turned}", at)
        hands = np.array(tip["x"]) + 1j * np.array(tip["y"]) - centres
        np.testing.assert_allclose(hands, values / abs(before).max(), atol=1e-5)
        for i, value in enumerate(values):
            p = next(points)
            assert f"pair {i} {'after' if turned else 'before'} " in p.told and p.told.startswith(f"{vector} of ")
            assert all(tells(p.told, number) for number in (value.real, value.imag, at * speeds(seen)[i]))
