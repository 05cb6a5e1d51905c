"""Surprisal shading of tokens, bars of the next token, and the mark of the random number, also beyond the context."""

import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from explorer.analysis.next_token import actual_token_ranks, surprisal
from model.config import window_start
from model.generation.autoregressive import generate
from model.generation.sampling import draw_token, sampling_distribution, uniform_draw
from tests.rendered_figures import contains_number

from .checkpoints import CONTEXT_LENGTH
from .pixels import capture_visible_run, iterate_themes, model, wait_for_animations

SHADES = """(strip) => [...strip.querySelectorAll(".chip")].map((chip) => {
  const context = document.createElement("canvas").getContext("2d");
  context.fillStyle = getComputedStyle(chip).backgroundColor;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
})"""
# CSS variables -> painted colours.
PAINTED = """(strip, names) => names.map((name) => {
  const sample = strip.appendChild(document.createElement("i"));
  sample.style.background = `var(${name})`;
  const colour = getComputedStyle(sample).backgroundColor;
  sample.remove();
  return colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
})"""
TABLE_ROWS = """(box) => [...box.querySelectorAll("tbody tr")].map((row) => {
  const boxOf = (part) => row.querySelector(part).getBoundingClientRect();
  const [around, bar, tick] = [".bars", ".bars b", ".bars i"].map(boxOf);
  const [number, tag] = [".number", ".tag"].map((part) => row.querySelector(part).textContent);
  const share = (x) => (x - around.x) / around.width, middle = tick.x + tick.width / 2;
  return { id: +row.dataset.token, number, tag, from: share(bar.x), to: share(bar.right), tick: share(middle) };
})"""
RANDOM_NUMBER_LINE = """(line) => {
  const around = line.getBoundingClientRect(), share = (x) => (x - around.x) / around.width;
  const luck = line.querySelector(".luck").getBoundingClientRect();
  const stretches = [...line.querySelectorAll(".stretch")].map((stretch) => [stretch, stretch.getBoundingClientRect()]);
  return { luck: share(luck.x + luck.width / 2), stretches: stretches.map(([stretch, { x, right }]) =>
    ({ start: share(x), end: share(right), drawn: stretch.classList.contains("drawn"), note: stretch.dataset.note })) };
}"""
SETTINGS = {"temperature": 0.25, "top_k": 30, "seed": 3}


def test_token_shading_shows_surprisal_or_rank(open_page):
    person = open_page(checkpoint="gpt-twin")
    trace = capture_visible_run(person)
    bits, ranks = surprisal(trace), actual_token_ranks(trace)
    shares = {"surprisal": bits / 12, "rank": np.log2(ranks) / np.log2(trace.config.vocab_size)}
    values = {"surprisal": bits, "rank": ranks}
    choice = person.page.locator("#strip select")
    for _ in iterate_themes(person, person.grid):
        for name, share in shares.items():
            choice.select_option(name)
            expect(person.chips.nth(1)).to_have_attribute("title", re.compile(name))
            colours = np.array(wait_for_animations(person.strip).evaluate(SHADES))
            share = np.nan_to_num(share).clip(0, 1)
            full = (colours[1:] - colours[0]).T @ share[1:] / (share @ share)  # full colour minus no colour
            background, full_colour = np.array(
                person.strip.evaluate(PAINTED, ["--background-fill-secondary", "--orange"])
            )
            assert np.abs(colours[0] - background).max() <= 2  # the first token has no prediction, so no shading
            assert full @ (full_colour - background) > 0.99 * np.linalg.norm(full) * np.linalg.norm(
                full_colour - background
            )
            assert np.abs(full).max() > 30
            assert np.abs(colours - colours[0] - np.outer(share, full)).max() <= 2
            titles = person.chips.evaluate_all("(chips) => chips.map((chip) => chip.title)")
            assert all(contains_number(title, value) for title, value in zip(titles[1:], values[name][1:], strict=True))
            assert all(title.startswith(f"position {i}") for i, title in enumerate(titles))


def find_scale(*probabilities: np.ndarray) -> int:
    """Return how many times as long the bars are drawn, so that the longest takes two fifths of its column."""
    longest = max(values.max() for values in probabilities)
    return next(scale for scale in (1, 2, 5, 10, 20, 50, 100) if scale * longest >= 0.4)


@pytest.mark.exhaustive
def test_next_token_of_text_longer_than_context(open_page):
    person = open_page(text="the owl and the moon and the lake " * 4, **SETTINGS)
    person.page.locator("[data-shows=stages]").click()  # columns of the sampling stages have no bars
    prompt = person.state["prompt"]
    count = CONTEXT_LENGTH + 6 - len(prompt)
    assert count > 4
    person.generate(count)
    lm, tokenizer = model("tiny")
    steps = generate(lm, prompt, max_new_tokens=count + 1, **SETTINGS)
    ids = prompt + [step.token_id for step in steps]
    text_ids, next_id = ids[:-1], ids[-1]
    start = window_start(len(text_ids), CONTEXT_LENGTH)
    assert start > 0 and person.state["generated"] == text_ids[len(prompt) :]
    expect(person.chips).to_have_count(len(text_ids) - start)
    trace = capture_visible_run(person)
    at_end = len(trace) - 1
    for query in (at_end, at_end - 2):
        with person.wait_for_redraw(person.prediction):
            person.chips.nth(query).click()
        text_position = start + query + 1
        sampled = sampling_distribution(trace["logits"][query], 0.25, 30)
        plain = sampling_distribution(trace["logits"][query])
        u = uniform_draw(3, text_position)
        expect(person.page.locator("#next-token-words")).to_contain_text(f"position {query}")
        line = wait_for_animations(person.draw).locator(".line").evaluate(RANDOM_NUMBER_LINE)
        assert line["luck"] == pytest.approx(u, abs=0.01)
        scale = find_scale(sampled, plain)
        for row in person.prediction.evaluate(TABLE_ROWS):
            expected = 0, scale * sampled[row["id"]], scale * plain[row["id"]]
            assert (row["from"], row["to"], row["tick"]) == pytest.approx(expected, abs=0.02)
            assert contains_number(row["number"], sampled[row["id"]])
            is_drawn = row["id"] == draw_token(sampled, u)  # tagged "written" where the text has it
            assert is_drawn or row["tag"] != "Step picks"
            assert not is_drawn or row["tag"]
        (drawn_stretch,) = [stretch for stretch in line["stretches"] if stretch["drawn"]]
        assert drawn_stretch["start"] - 0.01 <= line["luck"] <= drawn_stretch["end"] + 0.01
        assert drawn_stretch["end"] - drawn_stretch["start"] == pytest.approx(sampled[draw_token(sampled, u)], abs=0.01)
        assert tokenizer.vocabulary[draw_token(sampled, u)].strip() in drawn_stretch["note"]
        assert draw_token(sampled, u) == (next_id if query == at_end else text_ids[text_position])
    with person.wait_for_redraw(person.prediction):
        person.page.evaluate("window.explorer.select({temperature: 2})")
    hot = sampling_distribution(trace["logits"][query], 2, 30)
    assert find_scale(hot, plain) > scale
    scale = find_scale(hot, plain)  # by the state alone: small ones are magnified, and the end of the scale is shown
    expect(person.page.locator("#answer .scale")).to_have_text(f"full bar: {100 / scale:g}%")
    for row in wait_for_animations(person.prediction).evaluate(TABLE_ROWS):
        assert row["to"] == pytest.approx(scale * hot[row["id"]], abs=0.02)
    with person.wait_for_redraw(person.prediction):
        person.page.evaluate("window.explorer.select({temperature: 0.25})")
    person.draw.get_by_label("log bars").check()
    wait_for_animations(person.prediction)
    for row in person.prediction.evaluate(TABLE_ROWS):
        length = max(0, 1 + np.log10(max(sampled[row["id"]], 1e-12)) / 6)
        assert row["to"] == pytest.approx(length, abs=0.02)
    playback_text = person.playback.locator(".told")
    expect(playback_text).to_contain_text(f"of {count}")
    named = [token.text_content() for token in playback_text.locator(".token").all()]
    assert named == [tokenizer.vocabulary[i] for i in text_ids[start + at_end - 2 : start + at_end]]
    chance = torch.softmax(lm(torch.tensor([prompt]))[0, -1], -1)[text_ids[len(prompt)]].item()
    share = person.branches.first.evaluate("(row) => +row.style.getPropertyValue('--share')")
    assert share == pytest.approx(chance, abs=1e-3)
    person.page.get_by_role("button", name="Step", exact=True).click()
    expect(person.chips).to_have_count(len(ids) - window_start(len(ids), CONTEXT_LENGTH))
    expect(person.chips.last).to_have_text(tokenizer.vocabulary[next_id])


def expect_bars_beside_numbers(table):
    """Expect tracks of one width that no number, nor the mark of the model's own probability, overlaps or leaves."""
    bars = table.locator(".bars")
    assert min(bars.evaluate_all("all => all.map((bar) => bar.clientHeight)")) >= 10
    [track] = set(bars.evaluate_all("all => all.map((bar) => bar.clientWidth)"))
    assert track >= 30
    gaps = """all => all.map((bar) => bar.nextElementSibling.getBoundingClientRect().left
      - Math.max(bar.getBoundingClientRect().right, bar.lastElementChild.getBoundingClientRect().right))"""
    assert min(bars.evaluate_all(gaps)) >= 2
    assert table.evaluate("(box) => box.scrollWidth <= box.clientWidth")


@pytest.mark.parametrize("run", ["a", "difference"])
def test_bars_of_two_runs_have_one_width(open_new_page, run):
    person = open_new_page(viewport={"width": 1366, "height": 768}).open(
        "", depth="numbers", **{"b.text": "once upon a day", "shown": run}
    )
    table = person.prediction.locator(".table")
    expect(table).to_have_attribute("data-run", run)
    for column in ("logit", "model", "probability"):
        expect(table.locator(f"thead .{column}")).to_be_visible()
    expect_bars_beside_numbers(table)


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_intervention_bars_fit_beside_original_probabilities(open_new_page, width):
    person = open_new_page(viewport={"width": width, "height": 900}).open(
        "", edits="blocks.0.attn.z.1*zero", depth="numbers"
    )
    table = person.prediction.locator(".table")
    for column in ("before", "model"):
        expect(table.locator(f"thead .{column}")).to_be_visible()
    names = table.locator("tbody .text")
    expect_bars_beside_numbers(table)
    cut = """all => all.filter((name) => name.scrollWidth > name.clientWidth)
      .map((name) => `${name.closest("tr").innerText} ${name.scrollWidth} ${name.clientWidth}`)"""
    assert names.evaluate_all(cut) == []
    is_whole = """([rank, name]) => {
      [rank.textContent, name.textContent] = ["1", "·happy"];
      return name.scrollWidth <= name.clientWidth;
    }"""
    assert table.locator(".tagged :is(.rank, .text)").evaluate_all(is_whole)  # beside the tag
