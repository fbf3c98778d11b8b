// Keeps what is typed: in the browser at once, on the server after each pause, and says which of the two it is.
// Sending is the form's own hx-post; this file remembers, retries with back-off, and shows the state.
(() => {
  const form = document.querySelector("form[data-keep]");
  if (!form) return;
  const key = `draft ${form.dataset.keep}`;
  const boxes = () => [...form.querySelectorAll("input[data-blank]")];
  const output = () => form.querySelector("output.saved");
  let wait = 1000;
  let timer = 0;

  const say = (state) => {
    output().dataset.state = state;
    output().textContent = output().dataset[state] ?? "";
  };

  const stored = {
    read() {
      try { return JSON.parse(localStorage.getItem(key)) ?? {}; } catch { return {}; }
    },
    write(draft) {
      try { localStorage.setItem(key, JSON.stringify(draft)); } catch { /* storage is full or forbidden: the server still keeps it */ }
    },
  };

  const note = () => {
    form.elements.version.value = Math.max(Date.now(), Number(form.elements.version.value) + 1);
    const answers = Object.fromEntries(boxes().map((box) => [box.name, box.value]));
    stored.write({ version: Number(form.elements.version.value), waiting: true, answers });
    say("typing");
  };

  const again = () => {
    clearTimeout(timer);
    say("waiting");
    timer = setTimeout(() => form.dispatchEvent(new Event("keep")), wait);
    wait = Math.min(wait * 2, 30000);
  };

  const kept = (version) => {
    const draft = stored.read();
    wait = 1000;
    clearTimeout(timer);
    if (draft.waiting && draft.version > version) return; // typed on since: the next save is already on its way
    stored.write({ ...draft, waiting: false });
    say("saved");
  };

  const restore = () => {
    const draft = stored.read();
    // Newer than this page, though it may have reached the server: a reload can be answered before the save it overtook.
    if (!(draft.version > Number(form.elements.version.value))) return;
    for (const box of boxes()) box.value = draft.answers[box.name] ?? box.value;
    form.elements.version.value = draft.version;
    say("typing");
    form.dispatchEvent(new Event("keep"));
  };

  form.addEventListener("input", (event) => {
    note();
    const cell = event.target.closest("[data-mark]");
    if (cell) { // what was marked is no longer what stands there
      delete cell.dataset.mark;
      document.getElementById(event.target.getAttribute("aria-describedby")).textContent = "";
      cell.querySelector(".read-as")?.remove();
    }
  });

  // An activity that has closed takes nothing in any more: sending again would not help.
  const refused = () => {
    clearTimeout(timer);
    stored.write({ ...stored.read(), waiting: false });
    say("refused");
  };

  const failed = (ctx) => {
    if (ctx.sourceElement !== form) { // a button was pressed, and someone waits for what it does
      const result = form.querySelector(".result");
      result.textContent = ctx.response ? result.dataset.unable : result.dataset.unreachable;
    }
    again();
  };

  const version = (ctx) => Number(ctx.request.body.get("version"));
  const ours = (ctx) => form.contains(ctx.sourceElement);
  document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
    if (ours(ctx) && output().dataset.state === "typing") say("saving");
  });
  document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => {
    if (!ours(ctx)) return;
    if (ctx.response.status < 400) kept(version(ctx)); else if (ctx.response.status === 409) refused(); else failed(ctx);
  });
  document.addEventListener("htmx:error", ({ detail: { ctx } }) => { if (ctx && ours(ctx)) failed(ctx); });
  addEventListener("online", () => { if (stored.read().waiting) form.dispatchEvent(new Event("keep")); });
  // Leaving before the pause is over: the last words go along without an answer being awaited.
  addEventListener("pagehide", () => {
    if (stored.read().waiting) navigator.sendBeacon(form.getAttribute("hx-post"), new URLSearchParams(new FormData(form)));
  });
  addEventListener("load", restore);
})();
