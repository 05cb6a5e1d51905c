import random
from dataclasses import replace

import pytest

from explorer.state.generation_settings import GenerationSettings
from explorer.web.browser_api.page_contents import next_token_distribution_in_run
from explorer.web.public_api import PublicApi
from model.generation.autoregressive import generate
from tests.subtest_loops import subtest_each

CONTEXT = 32


@subtest_each("num_tokens", [CONTEXT - 1, CONTEXT, CONTEXT + 1, CONTEXT + 9, 3 * CONTEXT + 5])
@subtest_each("settings", [{"temperature": 0.0}, {"temperature": 1.5, "top_k": 0, "seed": 11}], ids=str)
@pytest.mark.exhaustive
def test_page_api_and_generate_treat_long_prompt_alike(builder, library, num_tokens, settings):
    """All three generate the same tokens; the page predicts them at every position on the way."""
    rng = random.Random(num_tokens)
    text = "".join(rng.choice("\x00\x01\x02\x03\x04\x05") for _ in range(num_tokens))
    lm, tokenizer = library.model("rope")
    ids = tokenizer.encode(text)
    assert len(ids) == num_tokens
    steps = list(generate(lm, ids, max_new_tokens=12, stop_tokens={tokenizer.end_of_text}, **settings))
    answer = PublicApi(builder, "rope").generate(text, max_new_tokens=12, **{"seed": 0} | settings)
    tokens = [(token["id"], token["probability"]) for token in answer["tokens"]]
    run = builder.create_run("rope", text)
    for step, (token_id, probability) in zip(steps, tokens, strict=True):
        trace = builder.runs.trace(run)
        prediction = next_token_distribution_in_run(run, len(trace) - 1, GenerationSettings(**settings), trace)
        assert prediction.sampled_token_id == step.token_id == token_id
        assert prediction.sampled[token_id] == pytest.approx(step.probability, rel=1e-3)
        assert probability == pytest.approx(step.probability, rel=1e-3)
        run = replace(run, generated=(*run.generated, token_id))
