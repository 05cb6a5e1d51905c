// @ts-check
import { call, Refused } from "../../static/connection.js";
import { tellBroken } from "../../static/contents.js";
import { find, make, span } from "../../static/dom.js";
import { _, ngettext } from "../../static/language.js";
import { goToStep, leftAt } from "../../static/lessons.js";
import { rove } from "../../static/roving.js";
import { state } from "../../static/state.js";

/** @typedef {{ name: string, title: string, audience: string, minutes: number, steps: number, against: string }} Listed */

/** @param {HTMLElement} element */
export default function lessons(element) {
  const open = find(element, ".open"), list = find(element, ".list");
  /** @type {Promise<Listed[]> | null} */
  let listed = null;

  async function show() {
    listed ??= call("listed_lessons", [state]);
    try {
      const found = await listed, left = leftAt();
      list.replaceChildren(...found.map((lesson) => row(lesson, left[lesson.name])));
    } catch (error) {
      listed = null;
      if (error instanceof Refused) tellBroken(error);
      return;
    }
    const { bottom, left: x } = open.getBoundingClientRect();
    list.style.top = `${bottom + 4}px`;
    list.hidden = false;
    list.style.left = `${Math.max(8, Math.min(x, innerWidth - list.offsetWidth - 8))}px`;
    open.ariaExpanded = "true";
    /** @type {HTMLElement} */ (list.firstElementChild)?.focus();
  }

  function hide() {
    if (list.contains(document.activeElement)) open.focus();
    list.hidden = true;
    open.ariaExpanded = "false";
  }

  function row({ name, title, audience, minutes, steps }, left) {
    const length = _("{minutes} min, {steps}", { minutes, steps: ngettext("{count} step", "{count} steps", steps) });
    const made = make("button", { type: "button", className: "one" }, span("title", title), span("length", length), span("audience", audience));
    if (left && left.step > 1) made.append(span("left", _("go on with step {step}", { step: left.step })));
    made.addEventListener("click", () => {
      hide();
      goToStep(name, Math.min(left?.step ?? 1, steps));
    });
    return made;
  }

  const rows = () => /** @type {HTMLElement[]} */ (Array.from(list.children));
  rove(list, {
    at: () => ({ row: rows().findIndex((one) => one === document.activeElement), column: 0 }),
    size: () => ({ rows: rows().length, columns: 1 }),
    go: (to) => rows()[to.row].focus(),
  });
  open.addEventListener("click", () => (list.hidden ? show() : hide()));
  element.addEventListener("keydown", (event) => { if (event.key === "Escape" && !list.hidden) hide(); });
  document.addEventListener("pointerdown", ({ target }) => {
    if (!list.hidden && target instanceof Node && !element.contains(target)) hide();
  });
}
