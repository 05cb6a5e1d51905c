// @ts-check
import { ask } from "../../static/asking.js";
import { connectBus } from "../../static/bus.js";
import { find } from "../../static/dom.js";
import { onState, state } from "../../static/state.js";

/** @param {HTMLElement} element @param {import("../../static/contents.js").Gradio} gradio */
export default function stateWidget(element, { props, emit }) {
  /** @param {import("../../static/state.js").State} now */
  const write = (now) => { props.value = now; };
  connectBus({ write, open: emit.open, follow: emit.follow, halt: emit.halt, move: (now) => { write(now); emit.move(); } });
  ask(); // what came before
  // There is nothing to undo at first.
  onState(element, () => {
    const undo = /** @type {HTMLButtonElement} */ (find(document, "#undo"));
    undo.disabled = !state.generated?.length;
  });
}
