"""What a model adds to a logit whatever it reads: the shifts of its norms, and the bias of its unembedding."""

from explorer.language import N_, look_up
from model.config import ModelConfig

# whether the norms have shifts, and whether the unembedding has a bias -> in words, and as short as on an axis
WORDS = {
    (True, False): N_("the shift β of all norms"),
    (False, True): N_("the bias of the unembedding"),
    (True, True): N_("the shift β of all norms and the bias of the unembedding"),
}
SHORT = {
    (True, False): N_("β of the norms"),
    (False, True): N_("bias of the unembedding"),
    (True, True): N_("β of the norms and bias of the unembedding"),
}
SIGNS = {(True, False): "β", (False, True): "b", (True, True): "β, b"}


def has_shifts(config: ModelConfig) -> bool:
    return any(_which(config))


def words(config: ModelConfig) -> str:
    return look_up(WORDS[_which(config)])


def short(config: ModelConfig) -> str:
    return look_up(SHORT[_which(config)])


def signs(config: ModelConfig) -> str:
    """As a formula has them."""
    return SIGNS[_which(config)]


def _which(config: ModelConfig) -> tuple[bool, bool]:
    return config.norm == "layernorm", config.unembedding_bias
