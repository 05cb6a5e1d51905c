"""Painted pixels of the page, and runs of the same model for comparison."""

import base64
from collections.abc import Iterator, Sequence

import numpy as np
from playwright.sync_api import Locator

from explorer.tracing.capture import capture
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.trace import Trace
from explorer.views.style import DARK, LIGHT, Theme
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

from .person import Person

READ_PIXELS = """async (image) => {
  const copy = new Image();
  copy.src = image.src || image.getAttribute("href") || image.getAttributeNS("http://www.w3.org/1999/xlink", "href");
  await copy.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: copy.width, height: copy.height });
  const context = canvas.getContext("2d");
  context.drawImage(copy, 0, 0);
  const pixels = context.getImageData(0, 0, copy.width, copy.height).data;
  return [copy.width, copy.height, btoa(Array.from(pixels, (byte) => String.fromCharCode(byte)).join(""))];
}"""
WAIT_FOR_ANIMATIONS = """(box) => Promise.allSettled(
  box.getAnimations({ subtree: true }).map((animation) => animation.finished)).then(() => true)"""
HOVER_TEXTS = "(plot) => [...plot.querySelectorAll('.hoverlayer .hovertext text')].map((text) => text.textContent)"
TICKS = """(plot, letter) => [...plot.querySelectorAll(`.${letter}tick text`)].map((tick) => tick.textContent)"""
# Texts in the cells of a heatmap: "column, row" -> text.
CELL_TEXTS = """(plot) => {
  const { xaxis, yaxis } = plot._fullLayout;
  const at = (axis, text, letter) => Math.round(axis.p2c(+text.getAttribute(letter)));
  const place = (text) => `${at(xaxis, text, "x")}, ${at(yaxis, text, "y")}`;
  const texts = [...plot.querySelectorAll(".heatmap-label text")];
  return Object.fromEntries(texts.map((text) => [place(text), text.textContent]));
}"""
# Bars at points of a plot: their colours, and their heights as shares of the axis.
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
    return ModelLibrary("cpu").model(checkpoint)


def capture_visible_run(person: Person, edits=()) -> Trace:
    """Capture the run of the visible tokens with the library alone."""
    state = person.state
    lm, tokenizer = model(state["checkpoint"])
    ids = state["prompt"] + state["generated"]
    return capture(lm, ids[-person.chips.count() :], edits, tokenizer=tokenizer)


def read_pixels(image: Locator) -> np.ndarray:
    """Return the painted colours of an image, (height, width, 3)."""
    width, height, data = image.evaluate(READ_PIXELS)
    return np.frombuffer(base64.b64decode(data), np.uint8).reshape(height, width, 4)[..., :3].astype(int)


def scale_colours(colours: Sequence[str], shares: np.ndarray) -> np.ndarray:
    """Return interpolated colours (..., 3) at shares (...) from 0 to 1 of evenly spaced colours."""
    stops = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in colours])
    stop_positions = np.linspace(0, 1, len(stops))
    return np.stack([np.interp(shares, stop_positions, channel) for channel in stops.T], axis=-1)


def cell_colours(plot: Locator, shape: tuple[int, int]) -> np.ndarray:
    """Return the colours (R, C, 3) in the middle of each cell of a painted heatmap; all cells must be visible."""
    image = read_pixels(plot.locator(".heatmaplayer image"))
    rows, columns = shape
    indices = [
        ((np.arange(count) + 0.5) * size / count).astype(int) for count, size in zip(shape, image.shape, strict=False)
    ]
    assert rows <= image.shape[0] and columns <= image.shape[1]
    return image[np.ix_(*indices)]


def iterate_themes(person: Person, *drawings: Locator) -> Iterator[Theme]:
    """Yield the theme that the page opens with, then the other one once the drawings are in it."""
    yield LIGHT
    with person.wait_for_redraw(*drawings):
        person.change_theme()
    yield DARK


def wait_for_animations(box: Locator) -> Locator:
    """Wait until all animations in a box have ended, and return the box."""
    box.evaluate(WAIT_FOR_ANIMATIONS)
    return box
