// @ts-check
import { connectBus } from "../../static/bus.js";
import { find } from "../../static/dom.js";
import { onState, state } from "../../static/state.js";
import { isWriting } from "../../static/writing.js";

/** @param {HTMLElement} element @param {import("../../static/contents.js").Gradio} gradio */
export default function stateWidget(element, { props, emit }) {
  /** @param {import("../../static/state.js").State} now */
  const write = (now) => { props.value = now; };
  connectBus({ write, open: emit.open, sync: emit.sync, halt: emit.halt, wake: emit.wake });
  // What has nothing to do cannot be pressed: at first nothing is written.
  function follow() {
    const [undo, stop, regenerate] = ["undo", "stop", "regenerate"].map((id) => /** @type {HTMLButtonElement} */ (find(document, `#${id}`)));
    undo.disabled = !state.generated?.length;
    regenerate.disabled = !(state.generated?.length > (state.began ?? 0));
    stop.disabled = !isWriting();
  }
  onState(element, follow);
}
