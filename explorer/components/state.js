Explorer.connect({
  write: (state) => { props.value = state; },
  openTab: () => trigger("open"),
  answer: (about, state, part) => server.answer(about, state, part),
});
