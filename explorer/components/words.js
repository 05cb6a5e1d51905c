const write = () => {
  element.firstElementChild.textContent = props.value || "";
  element.hidden = !props.value;
};
watch("value", write);
write();
