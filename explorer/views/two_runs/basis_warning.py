"""A warning that dimensions, heads and neurons of different models do not correspond."""

from explorer.tracing.comparison import Comparison
from explorer.translations import N_, translate

STEPS_WARNING = N_(
    "A and B are steps of one training: dimensions, neurons and heads keep their numbers from step to step, but what "
    "each stands for may change, the more the further apart the steps are."
)
MODELS_WARNING = N_(
    "A and B are two models: unless one was made of the other, each has dimensions, neurons and heads of its own, and "
    "those of the same number need not have anything in common. Differences of streams, neurons and heads, number by "
    "number, then do not mean what they mean between two runs of one model; those of probabilities of tokens do."
)


def basis_warning(comparison: Comparison) -> str:
    """Return a warning about differences number by number if A and B are of different models; "" otherwise."""
    a, b = comparison.runs
    if a.model == b.model:
        return ""
    is_same_training = a.training and b.training and a.training.model == b.training.model
    return translate(STEPS_WARNING if is_same_training else MODELS_WARNING)
