// @ts-check
import { pick } from "../../static/choosing.js";
import { blockOf, onContent } from "../../static/contents.js";
import { find, findAll, make, say, span } from "../../static/dom.js";
import { foldButton } from "../../static/fold.js";
import { _ } from "../../static/language.js";
import { onState, state } from "../../static/state.js";

/** @param {HTMLElement} element */
export default function choosers(element) {
  const box = find(element, ".choosers"), fold = foldButton();
  let built = new Map(), shown = []; // what a list shows, as JSON -> the list; what they show

  // A list that shows the same as before stays, and with it the keyboard's focus. While text is written those alone are
  // given that name its tokens; the others stay.
  function build({ choices, all }) {
    shown = choices = all ? choices : shown.map((old) => choices.find(({ field }) => field === old.field) ?? old);
    const lists = choices.map((choice) => [JSON.stringify(choice), choice]);
    const before = built;
    built = new Map(lists.map(([text, choice]) => [text, before.get(text) || listOf(choice)]));
    const wanted = [...built.values()];
    if (wanted.some((label, i) => label !== box.children[i]) || wanted.length !== box.children.length) box.replaceChildren(...wanted);
    follow();
  }

  function listOf({ field, title, options, most, free }) {
    if (free) return written(field, title, options);
    const range = { type: "number", min: 0, max: most, title: _("0 to {most}", { most }) };
    if (!options) return make("label", {}, span("", title), make("input", { ...range, dataset: { field } }));
    const items = options.map(([value, text]) => make("option", { value, text, dataset: { number: typeof value === "number" } }));
    return make("label", {}, span("", title), make("select", { dataset: { field } }, ...items));
  }

  // Any text, with some to choose from; the one of "" is what an empty box stands for.
  function written(field, title, options) {
    const id = `${blockOf(element).id}-${field}`, [[, nothing], ...some] = options;
    const list = make("datalist", { id }, ...some.map(([value]) => make("option", { value })));
    const input = make("input", { type: "text", maxLength: 40, placeholder: nothing, spellcheck: false, dataset: { field } });
    input.setAttribute("list", id);
    return make("label", {}, span("", title), input, list);
  }

  function follow() {
    for (const list of findAll(box, "[data-field]")) {
      /** @type {HTMLInputElement | HTMLSelectElement} */ (list).value = state[list.dataset.field];
      if (list instanceof HTMLSelectElement && list.selectedIndex < 0)
        list.selectedIndex = list.options.length - 1; // a token so new that it is not listed yet
    }
    fold.hidden = !shown.length;
    say(fold, findAll(box, "label").map(chosen).join(" · "));
  }

  function chosen(label) {
    const list = /** @type {HTMLInputElement | HTMLSelectElement} */ (find(label, "[data-field]"));
    const value = list instanceof HTMLSelectElement ? list.selectedOptions[0]?.text : list.value || list.placeholder;
    return `${label.firstChild.textContent} ${value}`;
  }

  box.addEventListener("change", ({ target: list }) => {
    if (list instanceof HTMLSelectElement) {
      const [{ value, dataset }] = list.selectedOptions;
      return pick({ [list.dataset.field]: dataset.number === "true" ? +value : value });
    }
    const { dataset, value, max, type } = /** @type {HTMLInputElement} */ (list);
    if (type === "text") return pick({ [dataset.field]: value });
    pick({ [dataset.field]: Math.round(Math.max(0, Math.min(+max, +value))) });
  });
  box.before(fold);
  onState(element, follow);
  onContent(element, build);
}
