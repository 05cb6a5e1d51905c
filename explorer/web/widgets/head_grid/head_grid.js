const grid = element.querySelector(".grid"), readout = element.querySelector(".readout");
const selects = JSON.parse(grid.dataset.selects), inspect = Explorer.evidence(element);
let value = null, bytes = null;

function load(pictures) {
  value = pictures;
  element.hidden = !value;
  if (!value) return;
  bytes = Uint8Array.from(atob(value.data), (c) => c.charCodeAt(0));
  grid.setAttribute("aria-label", value.alt);
  grid.style.setProperty("--heads", value.heads);
  const cells = [];
  for (let layer = 0; layer < value.layers; layer++) {
    const name = document.createElement("span");
    name.className = "layer";
    name.textContent = `L${layer}`;
    name.title = `layer ${layer}`;
    cells.push(name);
    for (let head = 0; head < value.heads; head++) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "head";
      button.dataset.layer = layer;
      button.dataset.head = head;
      button.setAttribute("aria-label", `attention pattern of layer ${layer} head ${head}`);
      const picture = new Image();
      picture.alt = ""; // the button has the words
      button.append(picture);
      cells.push(button);
    }
  }
  grid.replaceChildren(...cells);
  paint();
  mark();
}

// A table of 256 colours along the theme's sequential scale.
function colours() {
  const stops = Explorer.theme().sequential.map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
    const [r, g, b] = stops[low].map((c, j) => Math.round(c + (stops[low + 1][j] - c) * (at - low)));
    return (255 << 24) | (b << 16) | (g << 8) | r;
  });
}

function paint() {
  if (!value) return;
  const table = colours(), size = value.pixels;
  const canvas = document.createElement("canvas"), context = canvas.getContext("2d", { willReadFrequently: true });
  canvas.width = canvas.height = size;
  const image = context.createImageData(size, size), pixels = new Uint32Array(image.data.buffer);
  for (const button of grid.querySelectorAll(".head")) {
    const from = (+button.dataset.layer * value.heads + +button.dataset.head) * size * size;
    for (let i = 0; i < pixels.length; i++) pixels[i] = table[bytes[from + i]];
    context.putImageData(image, 0, 0);
    button.firstChild.src = canvas.toDataURL(); // a canvas a head would be a layer each, for every frame of the page
  }
  grid.dataset.draws = +(grid.dataset.draws || 0) + 1;
}

const chosenHeads = () => (Explorer.state.heads ? Explorer.state.heads.split("~") : []);

// Among the heads to be seen together, or no longer.
function toggle({ layer, head }) {
  const name = `${layer}.${head}`, heads = chosenHeads();
  const others = heads.filter((other) => other !== name);
  const kind = Explorer.state.pattern === "chosen_max" ? "chosen_max" : "chosen_mean";
  Explorer.pick({ heads: (others.length < heads.length ? others : [...heads, name]).join("~"), pattern: kind });
}

function mark() {
  const { layer, head } = Explorer.state, together = chosenHeads();
  for (const button of grid.querySelectorAll(".head")) {
    const chosen = +button.dataset.layer === layer && +button.dataset.head === head;
    button.setAttribute("aria-pressed", chosen);
    button.tabIndex = chosen ? 0 : -1;
    button.classList.toggle("among", together.includes(`${button.dataset.layer}.${button.dataset.head}`));
  }
}

function cellAt(event) {
  const button = event.target.closest(".head");
  if (!button) return null;
  const cell = { layer: +button.dataset.layer, head: +button.dataset.head };
  if (!event.detail && event.type === "click") return cell; // from the keyboard: no place under a pointer
  const box = button.firstChild.getBoundingClientRect();
  const pixel = (at, from, length) => Math.max(0, Math.min(value.pixels - 1, Math.floor(((at - from) / length) * value.pixels)));
  const column = pixel(event.clientX, box.left, box.width), row = pixel(event.clientY, box.top, box.height);
  cell.weight = bytes[((cell.layer * value.heads + cell.head) * value.pixels + row) * value.pixels + column] / 255;
  cell.x = column * value.block;
  cell.y = row * value.block;
  return cell;
}

grid.addEventListener("pointermove", (event) => {
  const cell = cellAt(event);
  readout.textContent = cell
    ? `layer ${cell.layer} head ${cell.head}: query ${cell.y} → key ${cell.x}, weight about ${cell.weight.toFixed(2)}`
    : "";
});
grid.addEventListener("pointerleave", () => { readout.textContent = ""; });
grid.addEventListener("click", (event) => {
  const cell = cellAt(event);
  if (!cell) return;
  if (event.shiftKey) return toggle(cell);
  if (!(cell.x <= cell.y)) delete cell.x, delete cell.y; // above the diagonal nobody looks: choose the head alone
  const change = {};
  for (const [source, field] of Object.entries(selects)) if (source in cell) change[field] = cell[source];
  Explorer.pick(change);
  if ("x" in cell) inspect({ x: cell.x, y: cell.y, layer: cell.layer, head: cell.head });
});
grid.addEventListener("keydown", (event) => {
  if (event.key === "+") return toggle(Explorer.state);
  const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
  if (!step) return;
  event.preventDefault();
  const clamp = (at, size) => Math.max(0, Math.min(size - 1, at));
  const layer = clamp(Explorer.state.layer + step[0], value.layers), head = clamp(Explorer.state.head + step[1], value.heads);
  Explorer.pick({ layer, head });
  grid.querySelector(`[data-layer="${layer}"][data-head="${head}"]`).focus();
});
Reach.sideways(grid, grid);
Explorer.onState(element, mark);
Explorer.onTheme(element, paint);
Explorer.onContent(element, load);
