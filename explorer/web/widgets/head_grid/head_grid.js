// @ts-check
import { bitmapBefore, rowBytes } from "../../static/bitmap.js";
import { pick } from "../../static/choosing.js";
import { palette } from "../../static/colour.js";
import { countDraw, find, make, span } from "../../static/dom.js";
import { evidenceIn } from "../../static/evidence.js";
import { _ } from "../../static/language.js";
import { inA } from "../../static/partners.js";
import { onPicture } from "../../static/pictures.js";
import { rove, stopAt } from "../../static/roving.js";
import { tellSideways } from "../../static/sideways.js";
import { onState, state } from "../../static/state.js";
import { onTheme, theme } from "../../static/theme.js";

/** @param {HTMLElement} element */
export default function headGrid(element) {
  const grid = find(element, ".grid"), readout = find(element, ".readout");
  const selects = JSON.parse(grid.dataset.selects), inspect = evidenceIn(element);
  let value = null, buttons = []; // of the heads, layer after layer
  let shape = [0, 0]; // layers and heads that there are buttons of

  function load(pictures) {
    value = pictures;
    element.hidden = !value;
    if (!value) return;
    grid.ariaLabel = value.alt;
    if (value.layers !== shape[0] || value.heads !== shape[1]) build();
    paint();
    mark();
  }

  function build() {
    shape = [value.layers, value.heads];
    grid.style.setProperty("--heads", value.heads);
    grid.style.setProperty("--layers", value.layers);
    const layers = Array.from({ length: value.layers }, (nothing, layer) => {
      const name = span("layer", `L${layer}`);
      name.title = _("layer {layer}", { layer });
      return [name, ...Array.from({ length: value.heads }, (nothing, head) => headButton(layer, head))];
    });
    buttons = layers.flatMap(([, ...heads]) => heads);
    grid.replaceChildren(...layers.flat());
  }

  function paint() {
    if (!value) return;
    const before = bitmapBefore(palette(value.signed ? theme().diverging : theme().sequential), value.pixels, value.pixels);
    buttons.forEach((button, n) => { button.firstChild.src = before + value.data[n]; });
    countDraw(grid);
  }

  const chosenHeads = () => (state.heads ? state.heads.split("~") : []);

  // Among the heads to be seen together, or no longer.
  function toggle({ layer, head }) {
    const name = `${layer}.${head}`, heads = chosenHeads(), others = heads.filter((other) => other !== name);
    const pattern = state.pattern === "chosen_max" ? "chosen_max" : "chosen_mean";
    pick({ heads: (others.length < heads.length ? others : [...heads, name]).join("~"), pattern });
  }

  const buttonOf = (layer, head) => buttons.find(({ dataset }) => +dataset.layer === layer && +dataset.head === head) ?? null;

  function mark() {
    const chosen = buttonOf(state.layer, state.head), together = chosenHeads();
    for (const button of buttons) {
      button.ariaPressed = String(button === chosen);
      button.classList.toggle("among", together.includes(`${button.dataset.layer}.${button.dataset.head}`));
    }
    stopAt(buttons, chosen);
  }

  // What of which head an event is at: from the keyboard there is no place under a pointer.
  function cellAt(event) {
    const button = event.target.closest(".head");
    if (!button) return null;
    const layer = +button.dataset.layer, head = +button.dataset.head;
    if (!event.detail && event.type === "click") return { layer, head };
    const box = button.firstChild.getBoundingClientRect();
    const pixel = (at, from, length) => Math.max(0, Math.min(value.pixels - 1, Math.floor(((at - from) / length) * value.pixels)));
    const column = pixel(event.clientX, box.left, box.width), row = pixel(event.clientY, box.top, box.height);
    const bytes = atob(value.data[layer * value.heads + head]);
    const share = bytes.charCodeAt(row * rowBytes(value.pixels) + column) / 255;
    const weight = value.signed ? 2 * share - 1 : share;
    return { layer, head, weight, x: column * value.block, y: row * value.block };
  }

  grid.addEventListener("pointermove", (event) => {
    const cell = cellAt(event);
    const told = cell && { ...cell, weight: cell.weight.toFixed(2) };
    readout.textContent = !cell ? "" : value.signed
      ? _("layer {layer} head {head}: query {y} → key {x}, weights differ by about {weight}", told)
      : _("layer {layer} head {head}: query {y} → key {x}, weight about {weight}", told);
  });
  grid.addEventListener("pointerleave", () => { readout.textContent = ""; });
  grid.addEventListener("click", (event) => {
    const cell = cellAt(event);
    if (!cell) return;
    if (event.shiftKey) return toggle(cell);
    if (!(cell.x <= cell.y)) delete cell.x, delete cell.y; // above the diagonal nobody looks: choose the head alone
    const change = {};
    for (const [source, field] of Object.entries(selects)) if (source in cell) change[field] = cell[source];
    if ("x" in cell) inspect({ x: cell.x, y: cell.y, layer: cell.layer, head: cell.head });
    pick(inA(change));
  });
  grid.addEventListener("keydown", ({ key }) => { if (key === "+") toggle(/** @type {any} */ (state)); });
  rove(grid, {
    at: () => ({ row: state.layer, column: state.head }),
    size: () => ({ rows: value.layers, columns: value.heads }),
    go: ({ row, column }) => {
      pick({ layer: row, head: column });
      buttonOf(row, column).focus();
    },
  });
  tellSideways(grid, grid);
  onState(element, mark);
  onTheme(element, paint);
  onPicture(element, grid, load);
}

function headButton(layer, head) {
  const picture = make("img", { alt: "" }); // the button has the words
  const ariaLabel = _("attention pattern of layer {layer} head {head}", { layer, head });
  return make("button", { type: "button", className: "head", ariaLabel, dataset: { layer, head } }, picture);
}

// 256 colours along a scale.
