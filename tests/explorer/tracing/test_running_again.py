from explorer.tracing import trace
from explorer.tracing.capture import capture

IDS = tuple(range(3, 15))


def test_a_block_runs_no_further_than_to_what_is_asked_for(tiny_lm, monkeypatch):
    some, runs = capture(tiny_lm, IDS, max_bytes=0), []
    monkeypatch.setattr(trace, "MAX_BLOCK_BYTES", 1)  # so that patterns are asked for alone
    tiny_lm.blocks[1].ffn.register_forward_pre_hook(lambda *args: runs.append("ffn"))
    some["blocks.1.attn.pattern"]
    assert not runs
    some["blocks.1.ffn.out"]
    assert runs == ["ffn"]
