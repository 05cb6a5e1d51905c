"""Effects of neurons as the browser shows them."""

import pytest

from tests.drawn import tells

from .pictures import INTO, PANEL, near, point_of


@pytest.mark.exhaustive
def test_a_bar_is_a_neuron_and_a_click_takes_it(two):
    picture = two.picture("neurons")
    patches, order = picture.layout["meta"]["changes"], picture.parts[0]["customdata"]
    assert [part["name"] for part in picture.parts] == list(INTO.values())
    assert patches["of"] == "edits" and patches["texts"] == [f"blocks.1.ffn.hidden.{i}*patch" for i in order]
    seen = picture.points()
    for part in picture.parts:
        assert part["customdata"] == order == [int(name) for name in part["x"]]
    for p in seen:
        assert (
            p.change == {"neuron": order[p.item]} and f"neuron {order[p.item]}\n" in p.told and tells(p.told, p.value)
        )
        derivation = PANEL["neurons"].inspect(two.runs, two.selection(), point_of(p))
        assert p.value == pytest.approx(derivation.value, abs=1e-9)
        assert derivation.recomputed == near(p.value)
        assert (INTO["denoise"] if p.part == 0 else INTO["noise"]) == picture.parts[p.part]["name"]
