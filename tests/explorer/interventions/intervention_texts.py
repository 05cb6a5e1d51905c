"""Interventions and their texts in URLs."""

from explorer.interventions import make_intervention

INTERVENTIONS_BY_TEXT = {
    "rope.angles*zero": make_intervention("rope.angles", "zero"),
    "rope.angles.3*zero": make_intervention("rope.angles", "zero", index=3),
    "rope.angles*base*500": make_intervention("rope.angles", "base", 500),
    "rope.angles*base*12345.678": make_intervention("rope.angles", "base", 12345.678),
    "position_embed*shift*4096": make_intervention("position_embed", "shift", 4096),
    "blocks.2.attn.z.1*zero": make_intervention("blocks.2.attn.z", "zero", index=1),
    "blocks.11.ffn.hidden.100*scale*-0.5": make_intervention("blocks.11.ffn.hidden", "scale", -0.5, 100),
    "embed*scale*1e-05": make_intervention("embed", "scale", 1e-5),
    "embed*scale*0.1": make_intervention("embed", "scale", 0.1),
}

# Kinds and positions added later; keep the ones above unchanged: old URLs contain them.
LATER_INTERVENTIONS = {
    "blocks.1.attn.z.2*patch": make_intervention("blocks.1.attn.z", "patch", index=2),
    "blocks.1.resid_post@3*patch_mean": make_intervention("blocks.1.resid_post", "patch_mean", positions=3),
    "blocks.2.attn.z.1@3-5.9*zero": make_intervention("blocks.2.attn.z", "zero", index=1, positions="3-5.9"),
    "embed@4*scale*2": make_intervention("embed", "scale", 2, positions=4),
    "embed@4-6.11*zero": make_intervention("embed", "zero", positions=[11, 4, 5, 6, 5]),
    "rope.angles@1-*zero": make_intervention("rope.angles", "zero", positions="1-"),
    "blocks.1.attn.z.2*mean": make_intervention("blocks.1.attn.z", "mean", index=2),
    "blocks.2.attn.pattern.1@9*mask*3": make_intervention("blocks.2.attn.pattern", "mask", 3, 1, positions=9),
    "blocks.2.attn.pattern@9-*drop*0": make_intervention("blocks.2.attn.pattern", "drop", 0, positions="9-"),
    "blocks.*.attn.pattern@9*drop*4": make_intervention("blocks.*.attn.pattern", "drop", 4, positions=9),
    "blocks.*.attn.pattern.1@9*mask*4": make_intervention("blocks.*.attn.pattern", "mask", 4, 1, positions=9),
    "blocks.1.ffn.gate.7*clamp*-0.5": make_intervention("blocks.1.ffn.gate", "clamp", -0.5, 7),
    "final_norm*norm*layernorm": make_intervention("final_norm", "norm", by="layernorm"),
    "blocks.1.attn_norm@3-5*norm*none": make_intervention("blocks.1.attn_norm", "norm", positions="3-5", by="none"),
    "blocks.1.resid_mid@3*add*unembed.17-20*0.5": make_intervention(
        "blocks.1.resid_mid", "add", 0.5, positions=3, by="unembed.17-20"
    ),
    "blocks.1.attn.out*add*ov.0.2.1*-1": make_intervention("blocks.1.attn.out", "add", -1, by="ov.0.2.1"),
    "embed*remove*neuron.0.9": make_intervention("embed", "remove", by="neuron.0.9"),
}

INTERVENTIONS_BY_TEXT |= LATER_INTERVENTIONS
