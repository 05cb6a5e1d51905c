Explorer.connect({
  write: (state) => { props.value = state; },
  show: () => trigger("show"),
  pick: () => trigger("pick"),
  tune: () => trigger("tune"),
});
