const story = element.querySelector(".story");
function write() {
  const { prompt = "", generated = "" } = props.value || {};
  story.querySelector(".prompt").textContent = prompt;
  story.querySelector(".generated").textContent = generated;
  story.scrollTop = story.scrollHeight;
  story.dataset.draws = +(story.dataset.draws || 0) + 1;
}
watch("value", write);
write();
