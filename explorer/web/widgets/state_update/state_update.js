function merge() {
  if (props.value?.change) Explorer.merge(props.value);
}
watch("value", merge);
merge();
