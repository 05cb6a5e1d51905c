const story = element.querySelector(".story");
function write({ prompt, generated }) {
  story.querySelector(".prompt").textContent = prompt;
  story.querySelector(".generated").textContent = generated;
  story.scrollTop = story.scrollHeight;
  story.dataset.draws = +(story.dataset.draws || 0) + 1;
}
Explorer.onContent(element, write);
