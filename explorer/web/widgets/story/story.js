const story = element.querySelector(".story");
function write({ prompt, generated }) {
  story.querySelector(".prompt").textContent = prompt;
  story.querySelector(".generated").textContent = generated;
  requestAnimationFrame(() => { story.scrollTop = story.scrollHeight; }); // once a frame the page's layout is known anyway
  story.dataset.draws = +(story.dataset.draws || 0) + 1;
}
Explorer.onContent(element, write);
