"""Head scores, by name: every file here with a `SCORE`."""

import pkgutil
from importlib import import_module

from explorer.analysis.head_scores.head_score import HeadScore


def discover_head_scores() -> list[HeadScore]:
    """Return the `SCORE` of every module of this package that has one, in their order."""
    modules = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    return sorted((module.SCORE for module in modules if hasattr(module, "SCORE")), key=lambda score: score.order)


HEAD_SCORES = {score.name: score for score in discover_head_scores()}
