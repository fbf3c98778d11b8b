// Keeps what is typed: in the browser at once, on the server after each pause, and says which of the two it is.
// Sending is the form's own hx-post; this file sends the boxes that changed, retries with back-off, and shows the state.
// A change stays "changed" until the server has said that it is stored. The server merges box by box, so the answer to a
// save also brings what other tabs and devices have changed (see merge_boxes in app/activities/work.py).
(() => {
  const BOX = "input[data-blank], textarea[data-question]";
  const nameOf = (box) => box.getAttribute("aria-label") ?? box.labels[0].textContent.trim();

  // A sheet that has closed shows what this browser could not save before, so that it can be copied.
  const left = document.querySelector("aside[data-unsaved]");
  for (const key of left ? Object.keys(localStorage).filter((each) => each.startsWith(`draft ${left.dataset.unsaved} `)) : []) {
    for (const [name, { text }] of Object.entries(JSON.parse(localStorage.getItem(key)))) {
      const box = document.querySelector(`:is(${BOX})[name="${CSS.escape(name)}"]`);
      if (!box?.readOnly || box.value === text) continue;
      const list = left.querySelector("ul") ?? left.appendChild(document.createElement("ul"));
      list.append(Object.assign(document.createElement("li"), { textContent: `${nameOf(box)}: ${text}` }));
      left.hidden = false;
    }
  }

  // What was marked is no longer what stands there, and the score is that of the last check.
  const unmark = (box) => {
    const cell = box.closest("[data-mark]");
    if (!cell) return;
    box.form.dataset.stale = "";
    box.removeAttribute("aria-invalid");
    delete cell.dataset.mark;
    document.getElementById(box.getAttribute("aria-describedby")).textContent = "";
    cell.querySelector(".read-as")?.remove();
  };

  // A swap leaves what is typed into alone, and so has to be told which boxes are wrong.
  document.addEventListener("htmx:after:swap", () => {
    for (const box of document.querySelectorAll("#work input[data-blank]")) {
      if (box.closest("[data-mark='wrong'], [data-mark='unreadable']")) box.setAttribute("aria-invalid", "true");
      else box.removeAttribute("aria-invalid");
    }
  });

  const preview = document.querySelector(".preview-bar ~ form.work"); // where nothing is kept
  preview?.addEventListener("input", ({ target }) => { if (target.matches("input[data-blank]")) unmark(target); });

  const form = document.querySelector("form[data-keep]");
  if (!form) return;
  const boxes = () => [...form.querySelectorAll(BOX)];
  const output = () => form.querySelector("output.saved");
  const prefix = `draft ${form.dataset.keep} `;
  const page = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const changed = new Map(); // by the name of the box: the page and the number of its last change
  const LONGEST_ANSWER_MS = 15000;
  const MOST_BUGS = 3; // answers 500 in a row, after which the same is not sent again by itself
  let number = 0;
  let version = 0; // of what the server has, as far as this page was told
  let wait = 1000;
  let timer = 0;
  let redraw = 0; // the timer after which a drawing is asked for that the server had no time for
  let bugs = 0; // answers 500 in a row
  let apology = ""; // what stands in the result because nothing could be saved

  // All of it is shown, but only what goes wrong is read out: once, however often it is tried, until all is saved again.
  const say = (state) => {
    output().dataset.state = state;
    output().textContent = output().dataset[state] ?? "";
    const aloud = form.querySelector(".unsaved-aloud");
    const failed = ["waiting", "refused", "unsaved"].includes(state);
    const sentence = failed ? output().textContent : ["typing", "saving"].includes(state) ? aloud.textContent : "";
    if (aloud.textContent !== sentence) aloud.textContent = sentence;
  };

  const tell = (sentence) => { form.querySelector(".result").textContent = sentence; };

  const remember = () => {
    const kept = boxes().filter((box) => changed.has(box.name)).map((box) => [box.name, { text: box.value, ...changed.get(box.name) }]);
    try {
      if (kept.length) localStorage.setItem(prefix + page, JSON.stringify(Object.fromEntries(kept)));
      else localStorage.removeItem(prefix + page);
    } catch { /* storage is full or forbidden: the server still keeps it */ }
  };

  const send = () => { form.dispatchEvent(new Event("keep")); };

  const again = () => {
    clearTimeout(timer);
    if (!changed.size) return;
    say("waiting");
    timer = setTimeout(send, wait);
    wait = Math.min(wait * 2, 30000);
  };

  form.addEventListener("input", ({ target }) => {
    if (!target.matches(BOX)) return;
    number += 1;
    changed.set(target.name, { page, number });
    remember();
    form.querySelector(".elsewhere").textContent = "";
    for (const box of form.querySelectorAll("[data-elsewhere]")) delete box.dataset.elsewhere;
    say("typing");
    unmark(target);
  });

  // What earlier pages of this browser could not save: under their own numbers, so that it counts once.
  const adopt = () => {
    let keys = [];
    try { keys = Object.keys(localStorage).filter((key) => key.startsWith(prefix) && key !== prefix + page); } catch { return; }
    for (const key of keys) {
      let kept = {};
      try { kept = JSON.parse(localStorage.getItem(key)) ?? {}; } catch { /* not ours */ }
      for (const box of boxes().filter((each) => !each.readOnly && kept[each.name]?.page && !changed.has(each.name))) {
        const { text, page: typedOn, number: asNumber } = kept[box.name];
        changed.set(box.name, { page: typedOn, number: asNumber });
        box.value = text;
        unmark(box);
      }
      remember();
      if (!localStorage.getItem(prefix + page)) continue;
      const locked = boxes().filter((box) => box.readOnly && kept[box.name]).map((box) => [box.name, kept[box.name]]);
      if (locked.length) localStorage.setItem(key, JSON.stringify(Object.fromEntries(locked)));
      else localStorage.removeItem(key);
    }
    if (!changed.size) return;
    say("typing");
    send();
  };

  // What was typed before this script had come is a change too.
  for (const box of boxes().filter((each) => !each.readOnly && each.value !== each.defaultValue)) {
    number += 1;
    changed.set(box.name, { page, number });
  }
  remember();

  // Every form says which of its boxes are new here; a save leaves the others out.
  form.addEventListener("formdata", ({ formData }) => {
    formData.set("stamps", [...changed].map(([name, stamp]) => `${name}:${stamp.page}:${stamp.number}`).join(" "));
  });

  // A swap leaves what is typed into alone, and so has to be told what is locked since the last attempt.
  document.addEventListener("htmx:after:swap", () => {
    for (const box of boxes()) box.readOnly = form.dataset.locked === "all" || (form.dataset.locked === "boxes" && box.matches("[data-blank]"));
  });

  const onlyChanges = (data) => {
    for (const box of boxes()) if (!changed.has(box.name)) data.delete(box.name);
    return data;
  };

  // `sent` are boxes whose text the server has just taken from here, perhaps without characters that nobody can see.
  // `marked`: marks have come with these answers, and belong to them.
  const show = (answers, sent, marked) => {
    const differing = boxes().filter((box) => !changed.has(box.name) && box.name in answers && box.value !== answers[box.name]);
    for (const box of differing.filter((each) => sent.has(each.name))) {
      const { selectionStart: at } = box;
      box.value = answers[box.name];
      if (box === document.activeElement) box.setSelectionRange(at, at);
    }
    const others = differing.filter((each) => !sent.has(each.name));
    for (const box of others) {
      box.value = answers[box.name];
      box.dataset.elsewhere = "";
      if (!marked) unmark(box);
    }
    if (!others.length) return;
    const notice = form.querySelector(".elsewhere");
    notice.textContent = notice.dataset.sentence.replace("{boxes}", others.map(nameOf).join(", "));
  };

  const accepted = (ctx) => {
    const answer = new DOMParser().parseFromString(ctx.text, "text/html").querySelector("data.kept");
    if (answer) {
      const kept = JSON.parse(answer.value);
      const sent = new Set([...changed].filter(([, stamp]) => stamp.number <= (kept.pages?.[stamp.page] ?? 0)).map(([name]) => name));
      for (const name of sent) changed.delete(name);
      if (kept.version >= version && kept.answers) show(kept.answers, sent, ctx.sourceElement !== form); // an older answer may come later
      version = Math.max(version, kept.version);
      try { sessionStorage.setItem(prefix, version); } catch { /* storage is forbidden */ }
    }
    remember();
    if (form.querySelector(".result").textContent === apology) tell("");
    apology = "";
    bugs = 0;
    wait = 1000;
    clearTimeout(timer);
    clearTimeout(redraw);
    if (ctx.response.headers.get("X-Drawing") === "later") redraw = setTimeout(send, 2000 + 3000 * Math.random());
    for (const box of boxes()) if (changed.has(box.name)) unmark(box); // typed on while it was marked
    if (!changed.size) say(version ? "saved" : "");
    else if (ctx.sourceElement !== form) send();
    else if (output().dataset.state === "saving") say("typing");
  };

  const failed = (ctx) => {
    if (ctx.sourceElement !== form) { // a button was pressed, and someone waits for what it does
      const { unable, unreachable } = form.querySelector(".result").dataset;
      apology = ctx.response ? unable : unreachable;
      tell(apology);
    }
    bugs = ctx.response?.status === 500 ? bugs + 1 : 0; // 500: a bug of the server's, where 503 would pass
    if (bugs < MOST_BUGS) return again();
    clearTimeout(timer);
    say("refused");
  };

  // Sending the same again would not help. The server's sentence says why.
  const refused = (ctx) => {
    clearTimeout(timer);
    const closed = ctx.response.headers.get("X-Refused") === "closed";
    const pressed = ctx.sourceElement !== form;
    const words = new DOMParser().parseFromString(ctx.text, "text/html").querySelector("main p")?.textContent;
    if (pressed || (!closed && changed.size)) tell(words ?? form.querySelector(".result").dataset.unable);
    if (!pressed) apology = words ?? "";
    if (closed) say(changed.size ? "unsaved" : "closed");
    else if (pressed && changed.size) send(); // the press was refused, not what is typed
    else if (changed.size) say("refused");
  };

  const ours = (ctx) => form.contains(ctx.sourceElement) && !ctx.sourceElement.closest("#agreement");
  document.addEventListener("htmx:config:request", ({ detail: { ctx } }) => {
    if (ctx.sourceElement !== form) return;
    onlyChanges(ctx.request.body);
    ctx.request.timeout = LONGEST_ANSWER_MS;
  });
  document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
    if (ours(ctx) && changed.size) say("saving");
  });
  document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
    if (!ours(ctx) || ctx.text === undefined) return; // aborted by a newer one, or an error, which htmx:error tells
    const { status } = ctx.response;
    const later = status >= 500 || status === 408 || (status === 429 && ctx.sourceElement === form); // a save is tried again
    if (status < 400) accepted(ctx);
    else if (later) failed(ctx);
    else refused(ctx);
  });
  document.addEventListener("htmx:error", ({ detail: { ctx } }) => { if (ctx && ours(ctx)) failed(ctx); });

  addEventListener("online", () => { if (changed.size) send(); });
  // Coming back to the page: another device may have changed something, and what waits here is tried again.
  let asked = 0;
  const ask = () => {
    if (document.visibilityState !== "visible" || performance.now() - asked < 1000) return; // one return, two events
    asked = performance.now();
    send();
  };
  addEventListener("focus", ask);
  document.addEventListener("visibilitychange", ask);
  addEventListener("pageshow", ({ persisted }) => { if (persisted) ask(); });
  // Leaving before the pause is over: the last words go along without an answer being awaited.
  addEventListener("pagehide", () => {
    if (changed.size) navigator.sendBeacon(form.getAttribute("hx-post"), new URLSearchParams(onlyChanges(new FormData(form))));
  });
  addEventListener("load", () => {
    let known = 0; // the version that the page before this one was told of, perhaps after this one had been written
    try { version = JSON.parse(form.querySelector("data.kept").value).version; } catch { /* an older page */ }
    try { known = Number(sessionStorage.getItem(prefix)); } catch { /* storage is forbidden */ }
    setTimeout(() => { adopt(); if (version < known && !changed.size) send(); }); // htmx begins in such a turn of its own
  });
})();
