"""What the parts of captured values are."""

from model.config import ModelConfig

# last part of a tap's name -> what the parts of its value are, and how many there are
AXES = {
    **dict.fromkeys(("q", "q_norm", "q_rot", "scores", "pattern", "z"), ("head", lambda config: config.num_heads)),
    **dict.fromkeys(("k", "k_norm", "k_rot", "v"), ("kv head", lambda config: config.kv_heads)),
    **dict.fromkeys(("gate_pre", "gate", "up", "hidden"), ("neuron", lambda config: config.d_ff)),
    "angles": ("pair", lambda config: config.d_head // 2),
    "logits": ("token", lambda config: config.vocab_size),
}


def axis(tap: str, config: ModelConfig) -> tuple[str, int]:
    """What the index of an edit counts, as in ("head", 6)."""
    kind, size = AXES.get(tap.rpartition(".")[2], ("dimension", lambda config: config.d_model))
    return kind, size(config)
