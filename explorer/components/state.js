Explorer.connect({
  write: (state) => { props.value = state; },
  openTab: () => trigger("open"),
  move: (state) => { props.value = state; trigger("move"); },
});
