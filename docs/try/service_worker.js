importScripts("../../explorer/web/without_server/service_worker.js");
