"""Exact effects of patching each node of a component by itself."""

from explorer.analysis.patching_effects import component_effects
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.patching.experiment import BY_POSITION
from explorer.translations import _, translate
from explorer.views import graph_objects as go
from explorer.views.patching.effect_map import DIRECTION, chosen_cell, effect_map
from explorer.views.patching.prompt_pair import PromptPairContext, require_patchable_pair


def exact_effect_map(runs: Comparison, selection: Selection, component: str, direction: str) -> go.Figure:
    """Draw the effect of patching each node of a component by itself from one run into the other."""
    prompt_pair = require_patchable_pair(runs, selection, component)
    values = component_effects(prompt_pair.experiment, component, selection.option("metric"), direction)
    title = _("{part}, {direction}", part=component, direction=translate(DIRECTION[direction]))
    texts = patch_texts(prompt_pair, component, direction, values.shape)
    return effect_map(
        prompt_pair, component, values, chosen_cell(prompt_pair, component, selection), title, texts, direction
    )


def patch_texts(
    prompt_pair: PromptPairContext, component: str, direction: str, shape: tuple[int, int]
) -> list[list[str]]:
    """Return for each node (L, P) the text of the intervention that patches it; "" where none can."""
    layers, num_columns = shape
    if component not in BY_POSITION:
        return [[f"blocks.{i}.{component}.{j}*patch" for j in range(num_columns)] for i in range(layers)]
    target_positions = prompt_pair.experiment.target_positions(direction)
    return [
        ["" if position is None else f"blocks.{i}.{component}@{position}*patch" for position in target_positions]
        for i in range(layers)
    ]
