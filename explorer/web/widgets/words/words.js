const write = (text) => {
  element.firstElementChild.textContent = text || "";
  element.hidden = !text;
};
watch("value", () => write(props.value));
write(props.value);
Explorer.onContent(element, write);
