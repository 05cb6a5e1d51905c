"""What is painted on the page, read back; and what a run of the same model says it should be."""

import base64
from collections.abc import Iterator, Sequence

import numpy as np
from playwright.sync_api import Locator

from explorer.tracing.capture import capture
from explorer.tracing.library import Library
from explorer.tracing.trace import Trace
from explorer.views.style import DARK, LIGHT, Theme
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

from .person import Person

READ = """async (image) => {
  const copy = new Image();
  copy.src = image.src || image.getAttribute("href") || image.getAttributeNS("http://www.w3.org/1999/xlink", "href");
  await copy.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: copy.width, height: copy.height });
  const context = canvas.getContext("2d");
  context.drawImage(copy, 0, 0);
  const pixels = context.getImageData(0, 0, copy.width, copy.height).data;
  return [copy.width, copy.height, btoa(Array.from(pixels, (byte) => String.fromCharCode(byte)).join(""))];
}"""
SETTLED = (
    "(box) => Promise.all(box.getAnimations({ subtree: true }).map((animation) => animation.finished)).then(() => true)"
)
HOVERED = "(plot) => [...plot.querySelectorAll('.hoverlayer .hovertext text')].map((text) => text.textContent)"
TICKS = """(plot, letter) => [...plot.querySelectorAll(`.${letter}tick text`)].map((tick) => tick.textContent)"""
# Of a heatmap what is written in its cells: "column, row" -> text.
WORDS = """(plot) => {
  const { xaxis, yaxis } = plot._fullLayout;
  const at = (axis, text, letter) => Math.round(axis.p2c(+text.getAttribute(letter)));
  const place = (text) => `${at(xaxis, text, "x")}, ${at(yaxis, text, "y")}`;
  const texts = [...plot.querySelectorAll(".heatmap-label text")];
  return Object.fromEntries(texts.map((text) => [place(text), text.textContent]));
}"""
# Of the bars at places of a plot: their colours, and their heights as shares of the axis.
BARS = """(plot, places) => {
  const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect();
  const bars = [...plot.querySelectorAll(".barlayer .point path")].map((path) => [path, path.getBoundingClientRect()]);
  return places.map(([x, y]) => {
    const at = box.left + xaxis._offset + xaxis.c2p(x), up = box.top + yaxis._offset + yaxis.c2p(y);
    const isAt = ([, around]) => around.left <= at && at <= around.right && around.top <= up && up <= around.bottom;
    const [path, { height }] = bars.findLast(isAt), [red, green, blue] = getComputedStyle(path).fill.match(/[\\d.]+/g);
    return { colour: [+red, +green, +blue], height: height / yaxis._length };
  });
}"""


def model(checkpoint: str) -> tuple[TransformerLM, Tokenizer]:
    return Library("cpu").model(checkpoint)


def run_on_show(person: Person, edits=()) -> Trace:
    """The run of the tokens that the page shows, by the library alone."""
    state = person.state
    lm, tokenizer = model(state["checkpoint"])
    ids = state["prompt"] + state["generated"]
    return capture(lm, ids[-person.chips.count() :], edits, tokenizer=tokenizer)


def pixels(image: Locator) -> np.ndarray:
    """(height, width, 3) colours of an image, as they were painted."""
    width, height, data = image.evaluate(READ)
    return np.frombuffer(base64.b64decode(data), np.uint8).reshape(height, width, 4)[..., :3].astype(int)


def on_scale(colours: Sequence[str], shares: np.ndarray) -> np.ndarray:
    """(..., 3) colours between evenly spaced ones at shares (...) of the way from the first, 0, to the last, 1."""
    stops = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in colours])
    at = np.linspace(0, 1, len(stops))
    return np.stack([np.interp(shares, at, channel) for channel in stops.T], axis=-1)


def cell_colours(plot: Locator, shape: tuple[int, int]) -> np.ndarray:
    """(R, C, 3) colours in the middles of the cells of a painted heatmap, all of which are in sight."""
    image = pixels(plot.locator(".heatmaplayer image"))
    rows, columns = shape
    at = [
        ((np.arange(count) + 0.5) * size / count).astype(int) for count, size in zip(shape, image.shape, strict=False)
    ]
    assert rows <= image.shape[0] and columns <= image.shape[1]
    return image[np.ix_(*at)]


def in_both_themes(person: Person, *drawings: Locator) -> Iterator[Theme]:
    """The theme that the page opens with, and the other once the drawings have it."""
    yield LIGHT
    with person.redrawn(*drawings):
        person.change_theme()
    yield DARK


def settled(box: Locator) -> Locator:
    """Once nothing in it moves any more."""
    box.evaluate(SETTLED)
    return box
