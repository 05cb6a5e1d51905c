Explorer.connect({
  write: (state) => { props.value = state; },
  openTab: () => trigger("open"),
  follow: () => trigger("follow"),
  halt: () => trigger("halt"),
  move: (state) => { props.value = state; trigger("move"); },
});
// There is nothing to undo at first.
Explorer.onState(element, () => { document.querySelector("#undo").disabled = !Explorer.state.generated?.length; });
