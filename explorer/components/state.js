Explorer.connect({ write: (state) => { props.value = state; }, tune: () => trigger("tune") });
