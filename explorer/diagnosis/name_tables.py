"""Tables that map other implementations' weight names to ours."""

from model.pretrained.llama import NAMES as LLAMA

COURSE = {
    "token_embeddings": "token_embedding",
    "layers.*.ln1": "blocks.*.attn_norm",
    "layers.*.attn.q_proj": "blocks.*.attn.q_proj",
    "layers.*.attn.k_proj": "blocks.*.attn.k_proj",
    "layers.*.attn.v_proj": "blocks.*.attn.v_proj",
    "layers.*.attn.output_proj": "blocks.*.attn.o_proj",
    "layers.*.ln2": "blocks.*.ffn_norm",
    "layers.*.ffn.w1": "blocks.*.ffn.gate_proj",
    "layers.*.ffn.w3": "blocks.*.ffn.up_proj",
    "layers.*.ffn.w2": "blocks.*.ffn.down_proj",
    "ln_final": "final_norm",
    "lm_head": "lm_head",
}
NANOGPT = {
    "transformer.wte": "token_embedding",
    "transformer.wpe": "position_embedding",
    "transformer.h.*.ln_1": "blocks.*.attn_norm",
    "transformer.h.*.attn.c_attn": ("blocks.*.attn.q_proj", "blocks.*.attn.k_proj", "blocks.*.attn.v_proj"),
    "transformer.h.*.attn.c_proj": "blocks.*.attn.o_proj",
    "transformer.h.*.ln_2": "blocks.*.ffn_norm",
    "transformer.h.*.mlp.c_fc": "blocks.*.ffn.up_proj",
    "transformer.h.*.mlp.c_proj": "blocks.*.ffn.down_proj",
    "transformer.ln_f": "final_norm",
    "lm_head": "lm_head",
}
LECTURE = {  # of A. Karpathy's lecture "Let's build GPT", whose heads are modules of their own
    "token_embedding_table": "token_embedding",
    "position_embedding_table": "position_embedding",
    "blocks.*.ln1": "blocks.*.attn_norm",
    "blocks.*.sa.heads.*.query": "blocks.*.attn.q_proj",
    "blocks.*.sa.heads.*.key": "blocks.*.attn.k_proj",
    "blocks.*.sa.heads.*.value": "blocks.*.attn.v_proj",
    "blocks.*.sa.proj": "blocks.*.attn.o_proj",
    "blocks.*.ln2": "blocks.*.ffn_norm",
    "blocks.*.ffwd.net.0": "blocks.*.ffn.up_proj",
    "blocks.*.ffwd.net.2": "blocks.*.ffn.down_proj",
    "ln_f": "final_norm",
    "lm_head": "lm_head",
}
OURS = {
    name: name
    for name in (
        *("token_embedding", "position_embedding", "final_norm", "lm_head", "blocks.*.attn_norm", "blocks.*.ffn_norm"),
        *(f"blocks.*.attn.{name}" for name in ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm")),
        *(f"blocks.*.ffn.{name}" for name in ("gate_proj", "up_proj", "down_proj")),
    )
}
NAME_TABLES = {"course": COURSE, "nanogpt": NANOGPT, "lecture": LECTURE, "llama": LLAMA, "ours": OURS}
