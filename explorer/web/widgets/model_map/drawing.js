// @ts-check
// The map as SVG: its lines, its parts, the legend, the words beside them, and the frames around what is chosen.
import { along, channels, legibleOn } from "../../static/colour.js";
import { say } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { makeSvg, many, set } from "../../static/svg.js";
import { theme } from "../../static/theme.js";
import { centre, headOf, pathOf, rectOf } from "./places.js";

const SCALE = "model-map-scale";
const LINE = 13; // of words on parts
const DISCS = ["norm", "addition", "rotation"];

/**
 * Puts an empty map on a sheet.
 * @param {HTMLElement} sheet
 * @param {string} keys what the keyboard does
 * @param {() => import("../../static/themes.js").Theme} coloured the theme that it is painted in
 */
export function mapOn(sheet, keys, coloured = theme) {
  /** @type {any} */
  let value = null;
  /** @type {SVGElement[]} */
  let parts = [];

  const newPart = () => {
    const part = makeSvg("g", "", makeSvg("rect", "shape"), makeSvg("path", "detail"), makeSvg("text"));
    set(part, { role: "button", tabindex: -1 });
    return part;
  };
  const [lines, buttons, legend, words] = ["lines", "parts", "legend", "words"].map((name) => makeSvg("g", name));
  for (const group of [lines, legend, words]) set(group, { "aria-hidden": true }); // the parts say it all
  const gradient = makeSvg("linearGradient"), bar = makeSvg("rect", "scale"), ring = makeSvg("rect", "ring");
  const frames = ["rival", "target", "head"].map((name) => makeSvg("rect", `frame ${name}`));
  const svg = makeSvg("svg", "", gradient, lines, buttons, legend, bar, words, ...frames, ring);
  gradient.id = SCALE;
  bar.setAttribute("fill", `url(#${SCALE})`);
  const about = _("Arrow keys go from part to part; {keys}; Escape leaves.", { keys });
  set(svg, { role: "group", "aria-description": about });
  sheet.append(svg);

  /** Draws what the widget is given, and gives the nodes of the parts. */
  function draw(content) {
    value = content;
    set(svg, { viewBox: `0 0 ${value.size.join(" ")}`, "aria-label": value.alt });
    many(lines, value.lines.length, () => makeSvg("g", "", makeSvg("path", "line"), makeSvg("path", "arrow"))).forEach((group, i) => {
      const [kind, corners, width, arrow] = value.lines[i], [line, head] = group.children;
      set(group, { class: kind });
      set(line, { d: pathOf(corners), "stroke-width": width });
      set(head, { d: arrow ? headOf(corners) : "" });
    });
    parts = many(buttons, value.parts.length, newPart);
    parts.forEach((node, i) => drawPart(node, value.parts[i]));
    if (!parts.some(({ tabIndex }) => tabIndex === 0)) set(parts[0], { tabindex: 0 });
    many(legend, value.legend.length, () => makeSvg("g", "", makeSvg("rect", "shape"), makeSvg("path", "detail"))).forEach((node, i) => {
      const [kind, box] = value.legend[i];
      set(node, { class: kind });
      drawShape(node, kind, box);
    });
    many(words, value.words.length, () => makeSvg("text")).forEach((node, i) => {
      const [x, y, text, kind, side] = value.words[i];
      set(node, { x, y, class: `word ${kind} ${side}` });
      say(node, text);
    });
    set(bar, rectOf(value.scale));
    paint();
    return parts;
  }

  function drawPart(node, { kind, box, value: share, told: about, written }) {
    drawShape(node, kind, box, share);
    const [x, y] = centre(box), rows = written.split("\n"), seen = rows.join(" "), name = about.replaceAll("\n", ", ");
    // Whoever speaks to the page says what is written on a part.
    set(node, { class: `part ${kind}`, "aria-label": name.includes(seen) ? name : `${name} (${seen})` });
    many(node.lastChild, rows.length, () => makeSvg("tspan")).forEach((row, i) => {
      set(row, { x, y: y + (i - (rows.length - 1) / 2) * LINE });
      say(row, rows[i]);
      if (i && row.previousSibling?.nodeType !== Node.TEXT_NODE) row.before(" ");
    });
  }

  function drawShape(node, kind, box, share) {
    const [left, , right, lower] = box, [x, y] = centre(box), radius = (right - left) / 2;
    const detail = {
      addition: `M${x - radius},${y}h${2 * radius}M${x},${y - radius}v${2 * radius}`,
      next_token: `M${left},${lower - 5}h${(right - left) * share}v3H${left}Z`,
    };
    set(node.children[0], { ...rectOf(box), rx: DISCS.includes(kind) ? radius : 0 });
    set(node.children[1], { d: detail[kind] ?? "" });
  }

  /** Colours what is added, in the theme's colours. */
  function paint() {
    const scale = coloured().template.layout.colorscale.diverging, stops = scale.map(([stop, colour]) => [stop, channels(colour)]);
    many(gradient, scale.length, () => makeSvg("stop")).forEach((stop, i) => set(stop, { offset: scale[i][0], "stop-color": scale[i][1] }));
    value.parts.forEach(({ kind, value: adds }, i) => {
      const rgb = kind === "next_token" || adds === null ? null : along(stops, (adds / value.largest + 1) / 2).map(Math.round);
      const [shape, , text] = /** @type {any} */ (parts[i].children);
      shape.style.fill = rgb ? `rgb(${rgb})` : "";
      text.style.fill = rgb ? legibleOn(rgb) : "";
    });
  }

  /** Frames the rival of the explained token, that token, and the head: places among the parts, -1 for none. */
  function frame(chosen) {
    frames.forEach((node, i) => {
      node.style.display = chosen[i] < 0 ? "none" : "";
      if (chosen[i] >= 0) set(node, rectOf(value.parts[chosen[i]].box));
    });
    parts.forEach((node, i) => {
      if (chosen.includes(i)) set(node, { "aria-current": true });
      else node.removeAttribute("aria-current");
    });
  }

  /** Makes a part the one where the keyboard is. */
  function ringAround(i) {
    parts.forEach((node, other) => set(node, { tabindex: other === i ? 0 : -1 }));
    const { x, y, width, height } = rectOf(value.parts[i].box);
    set(ring, { x: x - 3, y: y - 3, width: width + 6, height: height + 6 });
  }

  return { draw, paint, frame, ringAround };
}
