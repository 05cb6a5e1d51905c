// @ts-check
// The map of the model on paper: as on a wide page, with the style sheet that it has there, in the colours of paper.
import { make } from "../../static/dom.js";
import { THEMES } from "../../static/themes.js";
import { mapOn } from "../model_map/drawing.js";
import { onSheet } from "../model_map/places.js";

const STYLE = new URL("../model_map/model_map.css", import.meta.url).href;

/** Puts a map into a figure. @param {HTMLElement} into @param {any} picture as Python sends it */
export async function addMap(into, picture) {
  const wide = onSheet(picture, 0), sheet = make("div", { className: "sheet", inert: true }), style = new CSSStyleSheet();
  const made = make("div", { className: "map-on-paper", role: "img", ariaLabel: wide.alt }), root = made.attachShadow({ mode: "open" });
  style.replaceSync(await (await fetch(STYLE)).text()); // fetched, as what is in no document yet loads nothing
  root.adoptedStyleSheets = [style];
  root.append(sheet);
  sheet.style.setProperty("--ratio", wide.size.join("/"));
  mapOn(sheet, "", () => THEMES.light).draw(wide);
  into.append(made);
}
