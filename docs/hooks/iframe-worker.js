// Browsers start no worker for a page that was opened from disk: the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = `<script src="${url}"></script>`;
      this.scope = new Promise((resolve) => {
        frame.onload = () => {
          const scope = frame.contentWindow;
          scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          resolve(scope);
        };
      });
      document.body.append(frame);
    }

    async postMessage(data) {
      const scope = await this.scope;
      scope.dispatchEvent(new scope.MessageEvent("message", { data }));
    }
  };
}
