function merge() {
  const { change, ask } = props.value || {};
  if (change) Explorer.merge(change, ask);
}
watch("value", merge);
merge();
