// Lets the search work on pages that are opened from a folder: browsers start no worker there.
// On such pages, and only there, a hidden frame runs the worker's script and passes messages on.
(() => {
  if (location.protocol !== "file:") return;

  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      addEventListener("message", (event) => {
        if (event.source !== inner) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        this.onmessage?.(message);
      });
      inner.document.open();
      inner.document.write(
        "<!doctype html><body><script>" +
          "postMessage = (data) => parent.postMessage(data, '*');" +
          "importScripts = (...urls) => urls.reduce((before, url) => before.then(() =>" +
          " new Promise((resolve) => {" +
          "  const script = document.createElement('script');" +
          "  script.src = url; script.onload = resolve; document.body.append(script);" +
          " })), Promise.resolve());" +
          "<\/script><script src=\"" + url + "\"><\/script>",
      );
      inner.document.close();
      // Only now: opening the document removes listeners.
      this.ready = new Promise((resolve) => inner.addEventListener("load", resolve));
    }

    postMessage(data) {
      // A worker gets a copy: it may change what it is given.
      const message = new MessageEvent("message", { data: structuredClone(data) });
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(message));
    }

    terminate() {
      this.frame.remove();
    }
  };
})();
