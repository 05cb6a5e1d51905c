"""Descriptions of interventions."""

from explorer.interventions import parse_intervention
from tests.subtest_loops import subtest_each


@subtest_each(
    ("text", "words"),
    [
        ("rope.angles*shift*1200", "positions shifted by 1,200"),
        ("position_embed*shift*5", "positions shifted by 5"),
        ("rope.angles*base*500", "θ = 500 instead of 10,000"),
        ("rope.angles*base*1000000", "θ = 1,000,000 instead of 10,000"),
        ("rope.angles*zero", "rotation off"),
        ("rope.angles.3*zero", "pair 3 of rope.angles set to 0"),
        ("blocks.2.attn.z.1*zero", "layer 2 head 1: off"),
        ("blocks.2.attn.z*zero", "all heads of layer 2: off"),
        ("blocks.2.attn.z.1*scale*-0.5", "layer 2 head 1 × −0.5"),
        ("blocks.2.ffn.hidden.7*zero", "layer 2 neuron 7: off"),
        ("blocks.2.attn.v.1*zero", "kv head 1 of attn.v of layer 2 set to 0"),
        ("blocks.0.attn.out*zero", "attn.out of layer 0 set to 0"),
        ("embed.4*scale*2", "dimension 4 of embed × 2"),
        ("rope.angles@3-*zero", "rotation off, from position 3 on"),
        ("blocks.2.attn.z.1@3-5.9*zero", "layer 2 head 1: off, at positions 3–5, 9"),
        ("blocks.2.attn.z.1@3*mean", "layer 2 head 1: mean, at position 3"),
        ("embed*mean", "embed at its mean over the prompt"),
        ("blocks.2.attn.z.1*patch", "layer 2 head 1 as in the other run"),
        ("blocks.2.attn.z@1-*patch", "all heads of layer 2 as in the other run, from position 1 on"),
        ("blocks.2.attn.k.1@3*patch", "kv head 1 of attn.k of layer 2 as in the other run, at position 3"),
        ("embed*patch_mean", "embed at its mean over the other run"),
        (
            "blocks.2.attn.pattern.1@9*mask*3",
            "no query at position 9 sees position 3 with head 1 of layer 2; the other weights make up for it",
        ),
        ("blocks.2.attn.pattern*drop*3", "no token sees position 3 with all heads of layer 2; the other weights stay"),
        (
            "blocks.*.attn.pattern@9*mask*4",
            "no query at position 9 sees position 4 with all heads of every layer; the other weights make up for it",
        ),
        (
            "blocks.*.attn.pattern.1*drop*4",
            "no token sees position 4 with head 1 of every layer; the other weights stay",
        ),
        ("blocks.1.ffn.gate.7*clamp*-0.5", "ffn.gate of neuron 7 of layer 1 held at −0.5"),
        ("blocks.1.ffn.gate*clamp*2", "ffn.gate of all neurons of layer 1 held at 2"),
        ("final_norm*norm*none", "final_norm does not normalise"),
        ("blocks.1.ffn_norm*norm*layernorm", "ffn_norm of layer 1 is a LayerNorm"),
        ("blocks.1.attn_norm@3-5*norm*none", "attn_norm of layer 1 does not normalise, at positions 3–5"),
        (
            "blocks.1.resid_mid@3*add*unembed.17-20*-0.5",
            "−0.5 of its length added to resid_mid of layer 1, along the unembedding of token 17 less that of token "
            "20, at position 3",
        ),
        ("embed*remove*neuron.0.9", "what neuron 9 of layer 0 writes taken out of embed"),
        (
            "blocks.0.attn.out*add*ov.1.2.0*1",
            "1 of its length added to attn.out of layer 0, along direction 0 of what head 2 of layer 1 writes",
        ),
    ],
)
def test_description_in_plain_words(text, words, tiny_config):
    assert parse_intervention(text).describe(tiny_config) == words
