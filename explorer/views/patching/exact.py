"""Every node of a part put alone from one run into the other."""

from explorer.analysis.patching import part_effects
from explorer.language import _, look_up
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.patching_question import BY_POSITION
from explorer.views import graph_objects as go
from explorer.views.patching.effect_map import DIRECTION, chosen_cell, effect_map
from explorer.views.patching.two_prompts import TwoPrompts, prompts_for


def exact_map(runs: Comparison, selection: Selection, part: str, direction: str) -> go.Figure:
    """Every node of a part put alone from one run into the other."""
    two = prompts_for(runs, selection, part)
    values = part_effects(two.question, part, selection.metric, direction)
    words = _("{part}, {direction}", part=part, direction=look_up(DIRECTION[direction]))
    texts = patch_texts(two, part, direction, values.shape)
    return effect_map(two, part, values, chosen_cell(two, part, selection), words, texts, direction)


def patch_texts(two: TwoPrompts, part: str, direction: str, shape: tuple[int, int]) -> list[list[str]]:
    """Of each node the intervention that puts it in; "" where none can be."""
    layers, places = shape
    if part not in BY_POSITION:
        return [[f"blocks.{i}.{part}.{j}*patch" for j in range(places)] for i in range(layers)]
    put_at = two.question.put_at(direction)
    return [["" if at is None else f"blocks.{i}.{part}@{at}*patch" for at in put_at] for i in range(layers)]
