import"../../explorer/web/without_server/worker.js";
