// Keeps what is written on an exit ticket in this browser alone, until it is handed in; nothing is sent before that.
// Handing in is the form's own hx-post; this file remembers, tries again with back-off, and shows the state.
(() => {
  const ticket = document.querySelector("[data-ticket]");
  if (!ticket) return;
  const key = ticket.dataset.ticket;
  const form = ticket.querySelector("form");
  const stored = () => {
    try {
      return JSON.parse(localStorage.getItem(key) ?? "{}");
    } catch {
      return {};
    }
  };

  if (!form) {
    const left = ticket.querySelector("[data-left]");
    if (!left) localStorage.removeItem(key); // the server has it
    const { pick: _picked, ...answers } = stored();
    const written = Object.values(answers).flat().filter(Boolean).join("\n\n");
    if (left && written) {
      left.hidden = false;
      left.querySelector("blockquote").textContent = written;
    }
    return;
  }

  const fields = [...form.querySelectorAll("[name^=answer-], [type=checkbox][name=pick]")];
  const isText = (field) => field.matches("textarea");
  const output = form.querySelector("output");
  const MOST_BUGS = 3; // answers 500 in a row, after which the same is not sent again by itself
  let bugs = 0;
  let wait = 1000;
  let timer = 0;

  const say = (state) => {
    if (output.dataset.state === state) return; // said once, not at every key
    output.dataset.state = state;
    output.textContent = output.dataset[state];
  };

  const keep = () => {
    try {
      const data = new FormData(form);
      localStorage.setItem(
        key,
        JSON.stringify(Object.fromEntries(fields.map(({ name }) => [name, data.getAll(name)]))),
      );
      return true;
    } catch {
      return false;
    } // storage is full or forbidden, which is said
  };

  const restore = () => {
    const kept = stored();
    const touched = new Set(
      fields.filter((one) => (isText(one) ? one.value !== one.defaultValue : one.checked)).map((one) => one.name),
    );
    for (const field of fields.filter(({ name }) => name in kept && !touched.has(name))) { // else somebody answers already
      const values = [kept[field.name]].flat();
      if (isText(field)) field.value = values[0] || field.value;
      else field.checked = values.includes(field.value);
    }
  };

  const again = () => {
    clearTimeout(timer);
    say("waiting");
    timer = setTimeout(() => form.requestSubmit(), wait);
    wait = Math.min(wait * 2, 30000);
  };

  const ours = (ctx) => ctx?.sourceElement === form;
  form.addEventListener("input", () => {
    const kept = keep();
    if (output.dataset.state !== "waiting") say(kept ? "kept" : "unkept");
  });
  document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
    if (ours(ctx)) say("sending");
  });
  document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => {
    if (!ours(ctx)) return;
    const { status } = ctx.response;
    bugs = status === 500 ? bugs + 1 : 0; // 500: a bug of the server's, where 503 would pass
    if (status < 400) location.replace(form.action); // which says that it is in
    else if (status < 500 || bugs >= MOST_BUGS) form.submit(); // the server's own page says what is wrong
    else again();
  });
  document.addEventListener("htmx:error", ({ detail: { ctx } }) => {
    if (ours(ctx)) again();
  });
  addEventListener("online", () => {
    if (output.dataset.state === "waiting") form.requestSubmit();
  });

  restore();
  const isKept = keep();
  if (!isKept || fields.some((field) => isText(field) ? field.value : field.checked)) say(isKept ? "kept" : "unkept");
})();
