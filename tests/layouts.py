"""How the parts of each kind of block hang together, written down apart from the code that is tested."""

from model.config import ModelConfig

# where norms stand -> of a block each sum, what it is added to, what is added and what is handed on after it
SUMS = {
    "pre": [
        ("resid_mid", "resid_pre", ["attn.out"], "resid_mid"),
        ("resid_post", "resid_mid", ["ffn.out"], "resid_post"),
    ],
    "post": [
        ("resid_mid", "resid_pre", ["attn.out"], "attn_norm"),
        ("resid_post", "attn_norm", ["ffn.out"], "ffn_norm"),
    ],
    "parallel": [("resid_post", "resid_pre", ["attn.out", "ffn.out"], "resid_post")],
    "shared": [("resid_post", "resid_pre", ["attn.out", "ffn.out"], "resid_post")],
}
# likewise each norm and what it normalises
NORMS = {
    "pre": {"attn_norm": "resid_pre", "ffn_norm": "resid_mid"},
    "post": {"attn_norm": "resid_mid", "ffn_norm": "resid_post"},
    "parallel": {"attn_norm": "resid_pre", "ffn_norm": "resid_pre"},
    "shared": {"attn_norm": "resid_pre"},
}
# and what attention and feed-forward read
READS = {
    "pre": ("attn_norm", "ffn_norm"),
    "post": ("resid_pre", "attn_norm"),
    "parallel": ("attn_norm", "ffn_norm"),
    "shared": ("attn_norm", "attn_norm"),
}
STAGES = {"attn.out": "attention", "ffn.out": "feed-forward"}


def sums(config: ModelConfig) -> list[tuple[str, str, list[str], str]]:
    """All of a model: the sum, what it is added to, what is added, and what is handed on."""
    return [
        (f"{block}.{name}", f"{block}.{before}", [f"{block}.{out}" for out in added], f"{block}.{after}")
        for block in blocks(config)
        for name, before, added, after in SUMS[config.norm_placement]
    ]


def norms(config: ModelConfig) -> dict[str, str]:
    """All of a model but the final one, and what each normalises."""
    each = NORMS[config.norm_placement].items()
    return {f"{block}.{norm}": f"{block}.{read}" for block in blocks(config) for norm, read in each}


def stages(config: ModelConfig) -> list[str]:
    """What the stream's stages are called, without norms."""
    each = [" + ".join(STAGES[out] for out in added) for _name, _before, added, _after in SUMS[config.norm_placement]]
    return ["embedding", *(f"{layer} {name}" for layer in range(config.num_layers) for name in each)]


def blocks(config: ModelConfig) -> list[str]:
    return [f"blocks.{layer}" for layer in range(config.num_layers)]
