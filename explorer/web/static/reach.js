// What brings things within reach: pictures wider than their place, tabs by the keyboard, what a button speaks of.
window.Reach = {
  // Tells the style sheet, as data-more, on which sides of a box that scrolls sideways there is more to see.
  sideways(box, content) {
    const tell = () => {
      const left = box.scrollLeft > 1, right = box.scrollLeft + box.clientWidth < box.scrollWidth - 1;
      const more = [left && "left", right && "right"].filter(Boolean).join(" ");
      if (box.dataset.more !== more) box.dataset.more = more;
    };
    box.addEventListener("scroll", tell, { passive: true });
    const resized = new ResizeObserver(tell);
    resized.observe(box);
    resized.observe(content);
  },

  // Makes a bar of tabs one stop of the Tab key, in which the arrow keys move, as Gradio's is not. Tabs that have no room
  // are in a menu behind the last one.
  roveTabs(selector) {
    const bar = document.querySelector(selector);
    if (!bar) return requestAnimationFrame(() => Reach.roveTabs(selector)); // Gradio has yet to build it
    const stops = () => [...bar.querySelectorAll("[role=tab], .overflow-menu > button")].filter((stop) => stop.offsetWidth);
    const chosen = () => stops().find((stop) => stop.ariaSelected === "true") ?? stops()[0];
    const mark = () => { for (const stop of stops()) stop.tabIndex = stop === chosen() ? 0 : -1; };
    bar.addEventListener("keydown", (event) => {
      const all = stops(), at = all.indexOf(event.target);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
      if (at < 0 || to === undefined) return;
      event.preventDefault();
      const stop = all[(to + all.length) % all.length];
      stop.focus();
      if (stop.role === "tab") stop.click();
    });
    new MutationObserver(mark).observe(bar, { subtree: true, childList: true, attributeFilter: ["aria-selected", "class"] });
    new ResizeObserver(mark).observe(bar);
    mark();
  },

  // Scrolls to a picture once it is drawn; its tab may be about to open.
  reveal(id) {
    const picture = document.querySelector(`#${id} .plot`);
    if (!picture?.clientWidth || !picture.dataset.draws) return requestAnimationFrame(() => Reach.reveal(id));
    const { matches: still } = matchMedia("(prefers-reduced-motion: reduce)");
    document.getElementById(id).scrollIntoView({ block: "nearest", behavior: still ? "auto" : "smooth" });
  },
};
Reach.roveTabs("#views .tab-wrapper");
