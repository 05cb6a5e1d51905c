from dataclasses import replace

import pytest

from explorer.explain.notation import quote_word
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import RunRequest
from explorer.web.browser_api.page_contents import PageContents, next_token_distribution_in_run, token_strip_fields
from explorer.web.shared_constants import NEXT_TOKEN_WORDS, QUESTION, WHY


def test_token_strip_separates_prompt_and_generated_tokens(builder):
    run = RunRequest("rope", (5, 6, 7), (8, 9), dropped=4)
    strip = token_strip_fields(run, builder.runs.trace(run))
    assert len(strip["tokens"]) == len(strip["shades"]["surprisal"][0]) == 5
    assert (strip["num_prompt"], strip["earlier"]) == (3, 4)
    assert strip["shades"]["surprisal"][0][0] == 0


@pytest.mark.parametrize("num_prompt", [30, 3])
def test_token_strip_counts_tokens_outside_context(builder, num_prompt):
    ids = tuple(range(40))
    run = RunRequest("rope", ids[:num_prompt], ids[num_prompt:], dropped=5)
    strip = token_strip_fields(run, builder.runs.trace(run))
    assert len(strip["tokens"]) + strip["earlier"] == 40 + 5
    unseen = 40 - len(strip["tokens"])
    assert unseen == 8  # the window moves by a quarter of 32
    assert strip["num_prompt"] == max(0, num_prompt - unseen)
    assert builder.runs.trace(run).token_ids == ids[8:]


def test_prediction_follows_selected_token(builder, page_state):
    around, trace = PageContents(builder.runs), builder.runs.trace(page_state.run)
    prediction = next_token_distribution_in_run(page_state.run, 2, GenerationSettings(temperature=0), trace)
    assert prediction.actual == page_state.run.prompt[3]
    assert len(prediction.sampled) == 300
    summary = around.prediction(page_state, GenerationSettings(temperature=0), trace)[NEXT_TOKEN_WORDS]
    assert [summary[name] for name in ("position", "kept", "size", "entropy")] == [2, 1, 300, 0]
    last = builder.select_last_token(page_state)
    summary = around.prediction(last, GenerationSettings(top_k=7), trace)[NEXT_TOKEN_WORDS]
    assert (summary["kept"], summary["actual"]) == (7, None)
    *prompt, rest = page_state.run.prompt  # as if the model had written the last token
    run, story = (
        replace(page_state.run, prompt=tuple(prompt), generated=(rest,)),
        {"depth": "story", "view": "overview"},
    )
    written = replace(page_state, run=run, selection=replace(page_state.selection, query=len(prompt) - 1, **story))
    contents = around.prediction(written, GenerationSettings(), trace)
    assert contents[WHY + QUESTION] == f"Why {quote_word(trace.vocabulary[rest])}?"
    opened = replace(written, selection=replace(written.selection, why="open"))
    assert WHY + QUESTION not in around.prediction(opened, GenerationSettings(), trace)  # it comes with its answer
    assert (
        contents.items() >= {WHY + QUESTION: around.explanations(opened, GenerationSettings())[WHY + QUESTION]}.items()
    )
