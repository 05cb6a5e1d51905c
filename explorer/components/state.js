Explorer.connect({
  write: (state) => { props.value = state; },
  pick: () => trigger("pick"),
  tune: () => trigger("tune"),
});
