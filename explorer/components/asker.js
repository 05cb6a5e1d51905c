const view = JSON.parse(element.querySelector("[data-view]").dataset.view);
Explorer.connectView(view, { show: () => trigger("show"), pick: () => trigger("pick") });
