// @ts-check
// The one place for a view: what an answer brings of one stays, hidden while another is open. And the tabs, by pointer and
// keyboard.
import { pick } from "./choosing.js";
import { onContent, tellBroken } from "./contents.js";
import { find, findAll } from "./dom.js";
import { VIEW } from "./protocol.js";
import { rove, stopAt } from "./roving.js";
import { onState, state } from "./state.js";

/** @type {Map<string, HTMLElement>} */
const sections = new Map();

/** Starts the widgets in a part of the page, each by the module of its folder. @param {ParentNode} root */
export function mount(root) {
  const blocks = findAll(root, "[data-widget]:not([data-mounted])");
  return Promise.all(blocks.map(async (block) => {
    block.dataset.mounted = "";
    const { widget } = block.dataset;
    try { (await import(`../widgets/${widget}/${widget}.js`)).default(find(block, ".html-container")); } catch (error) {
      if (error instanceof TypeError && /module/.test(error.message)) dispatchEvent(new CustomEvent("explorer:missing", { detail: `${widget}.js` }));
      tellBroken(error);
    }
  }));
}

/** Shows views where they have their place. */
export function placeViews() {
  const place = find(document, `#${VIEW}`);
  onContent(place, ({ name, markup }) => {
    let section = sections.get(name);
    if (!section) {
      section = /** @type {HTMLElement} */ (document.createRange().createContextualFragment(markup).firstElementChild);
      sections.set(name, section);
      place.append(section);
      mount(section);
    }
    for (const [other, element] of sections) element.hidden = other !== name;
  });
  for (const bar of findAll(document, "[role=tablist]")) followTabs(bar);
}

/** One stop of the Tab key, in which the arrow keys move. @param {HTMLElement} bar */
function followTabs(bar) {
  const tabs = findAll(bar, "[role=tab]"), chosen = () => tabs.find(({ dataset }) => dataset.view === state.view) ?? tabs[0];
  bar.addEventListener("click", ({ target }) => {
    const tab = /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest("[role=tab]"));
    if (tab && tab.dataset.view !== state.view) pick({ view: tab.dataset.view });
  });
  rove(bar, {
    at: ({ target }) => {
      const column = tabs.indexOf(/** @type {HTMLElement} */ (target));
      return column < 0 ? null : { row: 0, column };
    },
    size: () => ({ rows: 1, columns: tabs.length }),
    go: ({ column }) => {
      tabs[column].focus();
      tabs[column].click();
    },
    round: true,
  });
  const follow = () => {
    for (const tab of tabs) tab.ariaSelected = String(tab.dataset.view === state.view);
    stopAt(tabs, chosen());
  };
  onState(bar, follow);
  follow();
}
