// @ts-check
import { onContent } from "../../static/contents.js";
import { find } from "../../static/dom.js";
import { onState, state } from "../../static/state.js";

/** @param {HTMLElement} element @param {import("../../static/contents.js").Gradio} gradio */
export default function picker(element, { props, watch, emit }) {
  const box = find(element, ".picker"), [list, moments] = box.querySelectorAll("select");
  let models = JSON.parse(box.dataset.models);

  function show(checkpoint) {
    const shown = models.find(({ checkpoints }) => checkpoints.some(([name]) => name === checkpoint));
    list.replaceChildren(...models.map(({ name }) => new Option(name, name)));
    list.value = shown?.name;
    moments.replaceChildren(...(shown?.checkpoints ?? []).map(([name, words]) => new Option(words, name)));
    moments.value = checkpoint;
    moments.hidden = moments.length < 2;
  }

  function choose(checkpoint) {
    props.value = checkpoint;
    emit.input();
  }

  const follow = () => show(state.checkpoint ?? props.value);
  // A model's last snapshot is the one that is trained furthest.
  list.addEventListener("change", () => choose(models.find(({ name }) => name === list.value).checkpoints.at(-1)[0]));
  moments.addEventListener("change", () => choose(moments.value));
  watch("value", () => show(props.value)); // refused: the one before
  onState(element, follow);
  onContent(element, (content) => { models = content; follow(); });
  follow();
}
