Explorer.connect({
  write: (state) => { props.value = state; },
  openTab: () => trigger("open"),
  move: (state) => { props.value = state; trigger("move"); },
  inspect: (state, id, point) => server.inspect(state, id, point),
  answer: (about, state, part) => server.answer(about, state, part),
});
