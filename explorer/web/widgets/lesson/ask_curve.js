// @ts-check
import { button, make, span } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { makeSvg, set } from "../../static/svg.js";
import { short } from "./ask_number.js";

const WIDTH = 320, HEIGHT = 160, LEFT = 44, BOTTOM = 24, EDGE = 10;

/** @type {import("./question.js").Ask} */
export function askCurve({ labels, lowest, highest }, judged, reply) {
  const low = judged?.truth.lowest ?? lowest, high = judged?.truth.highest ?? highest;
  const x = (i) => LEFT + EDGE + (i * (WIDTH - LEFT - 2 * EDGE)) / (labels.length - 1);
  const y = (value) => EDGE + ((high - value) * (HEIGHT - BOTTOM - 2 * EDGE)) / (high - low);
  const valueAt = (at) => Math.max(low, Math.min(high, high - ((at - EDGE) * (high - low)) / (HEIGHT - BOTTOM - 2 * EDGE)));
  const svg = makeSvg("svg", "curve");
  set(svg, { viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  const text = (words, at, up, anchor) => {
    const made = makeSvg("text");
    made.textContent = words;
    set(made, { x: at, y: up, "text-anchor": anchor });
    svg.append(made);
  };
  const line = (values, className) => {
    const made = makeSvg("polyline", className);
    set(made, { points: values.map((value, i) => `${x(i)},${y(value)}`).join(" ") });
    svg.append(made);
    return made;
  };
  for (const end of [low, high]) text(short(end, high - low), LEFT - 4, y(end) + 4, "end");
  labels.forEach((label, i) => text(label, x(i), HEIGHT - 6, "middle"));
  if (judged) {
    const given = judged.reply?.split("_").map(Number);
    set(svg, { role: "img", "aria-label": labels.map((label, i) => `${label}: ${judged.truth.written[i]}`).join(", ") });
    if (given) line(given, "of-visitor");
    line(judged.truth.truth, "of-run");
    return [svg, make("p", { className: "legend" }, ...(given ? [span("of-visitor", `╌╌ ${_("your reply")}`), " "] : []), span("of-run", `── ✓ ${_("the run")}`))];
  }
  const values = labels.map(() => (low + high) / 2), drawn = line(values, "of-visitor");
  const points = values.map((_value, i) => {
    const point = makeSvg("circle", "point");
    set(point, { r: 8, cx: x(i), tabindex: 0, role: "slider", "aria-label": labels[i], "aria-valuemin": low, "aria-valuemax": high });
    point.addEventListener("keydown", (event) => {
      const step = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[/** @type {KeyboardEvent} */ (event).key];
      if (!step) return;
      event.preventDefault();
      place(i, Math.max(low, Math.min(high, values[i] + (step * (high - low)) / 20)));
    });
    svg.append(point);
    return point;
  });
  function place(i, value) {
    values[i] = value;
    set(points[i], { cy: y(value), "aria-valuenow": short(value, high - low) });
    set(drawn, { points: values.map((one, j) => `${x(j)},${y(one)}`).join(" ") });
  }
  values.forEach((value, i) => place(i, value));
  const follow = (/** @type {PointerEvent} */ event) => {
    if (!event.buttons && event.type !== "pointerdown") return;
    const box = svg.getBoundingClientRect(), scale = WIDTH / box.width, at = (event.clientX - box.left) * scale;
    const nearest = labels.map((_label, i) => Math.abs(x(i) - at)).reduce((best, off, i, all) => (off < all[best] ? i : best), 0);
    place(nearest, valueAt((event.clientY - box.top) * scale));
  };
  svg.addEventListener("pointerdown", follow);
  svg.addEventListener("pointermove", follow);
  const given = () => reply(values.map((value) => short(value, high - low).replace("−", "-")).join("_"));
  return [make("p", { className: "legend" }, _("Drag the points, or move them with the arrow keys.")), svg, button(_("Reply"), given, { className: "reply" })];
}
