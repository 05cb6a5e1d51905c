// @ts-check
// The map of the model on paper: as on a wide page, with the style sheet that it has there, in the colours of paper.
import { make } from "../../static/dom.js";
import { THEMES } from "../../static/themes.js";
import { mapOn } from "../model_map/drawing.js";
import { onSheet } from "../model_map/places.js";

const STYLE = new URL("../model_map/model_map.css", import.meta.url).href;

/** Puts a map into a figure; resolved once it looks as it will. @param {HTMLElement} into @param {any} picture as Python sends it */
export async function addMap(into, picture) {
  const wide = onSheet(picture, 0), sheet = make("div", { className: "sheet", inert: true });
  const style = make("link", { rel: "stylesheet", href: STYLE }), made = make("div", { className: "map-on-paper", role: "img", ariaLabel: wide.alt });
  sheet.style.setProperty("--ratio", wide.size.join("/"));
  made.attachShadow({ mode: "open" }).append(style, sheet);
  mapOn(sheet, "", () => THEMES.light).draw(wide);
  const isStyled = new Promise((resolve) => { for (const end of ["load", "error"]) style.addEventListener(end, resolve); });
  into.append(made);
  await isStyled;
}
