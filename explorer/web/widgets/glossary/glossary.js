// @ts-check
import { find } from "../../static/dom.js";
import { explainTerms } from "../../static/terms.js";

/** @param {HTMLElement} element */
export default function glossary(element) {
  const [forms, meanings] = JSON.parse(find(element, "dl").dataset.known);
  explainTerms(forms, meanings);
}
