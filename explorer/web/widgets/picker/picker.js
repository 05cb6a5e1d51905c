const box = element.querySelector(".picker"), [list, moments] = box.children;
let models = JSON.parse(box.dataset.models);

function show(checkpoint) {
  const shown = models.find(({ checkpoints }) => checkpoints.some(([name]) => name === checkpoint));
  list.replaceChildren(...models.map(({ name }) => new Option(name, name)));
  list.value = shown?.name;
  moments.replaceChildren(...(shown?.checkpoints ?? []).map(([name, words]) => new Option(words, name)));
  moments.value = checkpoint;
  moments.hidden = moments.length < 2;
}

function choose(checkpoint) {
  props.value = checkpoint;
  trigger("input");
}

const follow = () => show(Explorer.state.checkpoint ?? props.value);
// A model's last snapshot is the one that is trained furthest.
list.addEventListener("change", () => choose(models.find(({ name }) => name === list.value).checkpoints.at(-1)[0]));
moments.addEventListener("change", () => choose(moments.value));
watch("value", () => show(props.value)); // refused: the one before
Explorer.onState(element, follow);
Explorer.onContent(element, (content) => { models = content; follow(); });
follow();
