// @ts-check
import { onContent } from "../../static/contents.js";
import { find } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { changeModel } from "../../static/moves.js";
import { modelOf } from "../../static/series.js";
import { onState, state } from "../../static/state.js";

/** @param {HTMLElement} element */
export default function picker(element) {
  const box = find(element, ".picker"), list = box.querySelector("select");
  const opens = JSON.parse(box.dataset.opens);
  let models = JSON.parse(box.dataset.models);

  function show(checkpoint) {
    list.replaceChildren(...models.map(([name]) => new Option(name, name)));
    if (opens) list.append(new Option(_("Open a model…"), ""));
    list.value = modelOf(checkpoint);
  }

  const follow = () => show(state.checkpoint ?? "");
  // A model's last checkpoint is the one that is trained furthest.
  list.addEventListener("change", () => {
    if (!list.value) {
      follow();
      return find(document, "#open-model").dispatchEvent(new Event("wanted"));
    }
    changeModel(models.find(([name]) => name === list.value)[1]);
  });
  onState(element, follow);
  onContent(element, (content) => { models = content; follow(); });
  follow();
}
