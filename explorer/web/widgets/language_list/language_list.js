// @ts-check
import { find } from "../../static/dom.js";
import { writeAddress } from "../../static/history.js";
import { language, rememberLanguage } from "../../static/language.js";

/** @param {HTMLElement} element */
export default function languageList(element) {
  const list = /** @type {HTMLSelectElement} */ (find(element, "select"));
  list.value = language;
  list.addEventListener("change", () => {
    writeAddress();
    rememberLanguage(list.value);
    const address = new URL(location.href);
    address.searchParams.set("lang", list.value);
    location.assign(address);
  });
}
