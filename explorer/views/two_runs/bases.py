"""Whether what has the same number in two runs is the same."""

from explorer.language import N_, look_up
from explorer.tracing.comparison import Comparison

STEPS = N_(
    "A and B are steps of one training: dimensions, neurons and heads keep their numbers from step to step, but what "
    "each stands for may change, the more the further apart the steps are."
)
MODELS = N_(
    "A and B are two models: unless one was made of the other, each has dimensions, neurons and heads of its own, and "
    "those of the same number need not have anything in common. Differences of streams, neurons and heads, number by "
    "number, then do not mean what they mean between two runs of one model; those of probabilities of tokens do."
)


def bases_told(comparison: Comparison) -> str:
    """What differences number by number mean where A and B are not of one model; "" where they are."""
    a, b = comparison.runs
    if a.model == b.model:
        return ""
    same = a.training and b.training and a.training.model == b.training.model
    return look_up(STEPS if same else MODELS)
