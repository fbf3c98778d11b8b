// Saves what is typed: in the browser at once, on the server after each pause, and says which of the two it is.
// docs/saving.md describes how. unsaved.js decides what is still to be saved, what of an answer goes into the boxes, and
// when to try again; sending is the form's own hx-post. This file has what lies between: elements, events and timers.
import { outcomeOf, Retries, UnsavedEdits } from "./unsaved.js";

(() => {
  const TYPED = "input[data-blank], textarea[data-question]";
  const BOX = `${TYPED}, select[data-blank], fieldset[data-blank]`; // a fieldset of radio buttons is one box
  const textOf = (box) => box.elements ? box.querySelector(":checked")?.value ?? "" : box.value;
  const write = (box, text) => {
    if (!box.elements) box.value = text;
    for (const option of box.elements ?? []) option.checked = option.value === text;
  };
  // What is chosen can't be changed any more, and is still sent.
  const lock = (box, isLocked) => {
    if (box.matches(TYPED)) box.readOnly = isLocked;
    for (const option of box.elements ?? box.options ?? []) option.disabled = isLocked && !option.matches(":checked");
  };
  const isLocked = (box) => box.readOnly ?? [...box.elements ?? box.options].some((option) => option.disabled);
  const isUntouched = (box) => {
    if (box.elements) return [...box.elements].every((option) => option.checked === option.defaultChecked);
    const chosen = [...box.options ?? []].find((option) => option.defaultSelected)?.value ?? "";
    return box.value === (box.options ? chosen : box.defaultValue);
  };
  const nameOf = (box) => box.getAttribute("aria-label") ?? box.labels[0].textContent.trim();

  // A sheet that has closed shows what this browser could not save before, so that it can be copied.
  const left = document.querySelector("aside[data-unsaved]");
  for (
    const key of left
      ? Object.keys(localStorage).filter((each) => each.startsWith(`draft ${left.dataset.unsaved} `))
      : []
  ) {
    for (const [name, { text }] of Object.entries(JSON.parse(localStorage.getItem(key) ?? "{}"))) {
      const box = document.querySelector(`:is(${BOX})[name="${CSS.escape(name)}"]`);
      if (!box || !isLocked(box) || textOf(box) === text) continue;
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
    delete cell.dataset.mark;
    for (const each of cell.querySelectorAll("[data-blank]")) { // several if they are marked together
      each.removeAttribute("aria-invalid");
      document.getElementById(`says-${each.name}`).textContent = "";
    }
    cell.querySelector(".read-as")?.remove();
  };

  // A swap leaves what is typed into alone, and so has to be told which boxes are wrong.
  document.addEventListener("htmx:after:swap", () => {
    for (const box of document.querySelectorAll("#work :is(input, select)[data-blank]")) {
      if (box.closest("[data-mark='wrong'], [data-mark='unreadable']")) box.setAttribute("aria-invalid", "true");
      else box.removeAttribute("aria-invalid");
    }
  });

  const preview = document.querySelector(".preview-bar ~ form.work"); // where nothing is kept
  preview?.addEventListener("input", ({ target }) => {
    const box = target.closest("[data-blank]");
    if (box) unmark(box);
  });

  const form = document.querySelector("form[data-keep]");
  if (!form) return;
  const boxes = () => [...form.querySelectorAll(BOX)];
  const output = () => form.querySelector("output.saved");
  const prefix = `draft ${form.dataset.keep} `;
  const randomBytes = crypto.getRandomValues(new Uint8Array(8));
  const unsaved = new UnsavedEdits(Array.from(randomBytes, (byte) => byte.toString(16).padStart(2, "0")).join(""));
  const retries = new Retries();
  const storageKey = prefix + unsaved.tab;
  const LONGEST_ANSWER_MS = 15000;
  let timer = 0;
  let redraw = 0; // the timer after which a drawing is asked for that the server had no time for
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

  const tell = (sentence) => {
    form.querySelector(".result").textContent = sentence;
  };

  const texts = () => Object.fromEntries(boxes().map((box) => [box.name, textOf(box)]));

  const remember = () => {
    try {
      if (unsaved.size) localStorage.setItem(storageKey, JSON.stringify(unsaved.toStore(texts())));
      else localStorage.removeItem(storageKey);
    } catch { /* storage is full or forbidden: the server still has it */ }
  };

  const send = () => {
    form.dispatchEvent(new Event("keep"));
  };

  const again = () => {
    clearTimeout(timer);
    if (!unsaved.size) return;
    say("waiting");
    timer = setTimeout(send, retries.next());
  };

  form.addEventListener("input", ({ target }) => {
    const box = target.closest(BOX);
    if (!box) return;
    unsaved.record(box.name);
    remember();
    form.querySelector(".elsewhere").textContent = "";
    for (const each of form.querySelectorAll("[data-elsewhere]")) delete each.dataset.elsewhere;
    say("typing");
    unmark(box);
  });

  // What earlier tabs of this browser could not save.
  const adopt = () => {
    let keys = [];
    try {
      keys = Object.keys(localStorage).filter((key) => key.startsWith(prefix) && key !== storageKey);
    } catch {
      return;
    }
    for (const key of keys) {
      /** @type {any} */
      let stored = {};
      try {
        stored = JSON.parse(localStorage.getItem(key) ?? "{}") ?? {};
      } catch { /* not ours */ }
      const [locked, writable] = [true, false].map((is) => boxes().filter((box) => isLocked(box) === is));
      const adopted = unsaved.adopt(stored, writable.map((box) => box.name));
      for (const box of writable.filter((each) => each.name in adopted)) {
        write(box, adopted[box.name]);
        unmark(box);
      }
      remember();
      if (!localStorage.getItem(storageKey)) continue;
      const left = locked.filter((box) => stored[box.name]).map((box) => [box.name, stored[box.name]]);
      if (left.length) localStorage.setItem(key, JSON.stringify(Object.fromEntries(left)));
      else localStorage.removeItem(key);
    }
    if (!unsaved.size) return;
    say("typing");
    send();
  };

  // What was typed before this script had come is a change too.
  for (const box of boxes().filter((each) => !isLocked(each) && !isUntouched(each))) {
    unsaved.record(box.name);
  }
  remember();

  // Every form says which of its boxes are new here; a save leaves the others out.
  form.addEventListener("formdata", ({ formData }) => {
    formData.set("edits", unsaved.field());
  });

  // A swap leaves what is typed into alone, and so has to be told what is locked since the last attempt.
  document.addEventListener("htmx:after:swap", () => {
    for (const box of boxes()) {
      lock(box, form.dataset.locked === "all" || (form.dataset.locked === "boxes" && box.matches("[data-blank]")));
    }
  });

  const onlyChanges = (data) => {
    for (const box of boxes()) if (!unsaved.has(box.name)) data.delete(box.name);
    return data;
  };

  // `marked`: marks have come with these answers, and belong to them.
  const show = ({ own, others }, marked) => {
    const changed = boxes().filter((box) => box.name in others);
    for (const box of boxes().filter((each) => each.name in own)) {
      const { selectionStart: at } = box;
      write(box, own[box.name]);
      if (box === document.activeElement && box.matches(TYPED)) box.setSelectionRange(at, at);
    }
    for (const box of changed) {
      write(box, others[box.name]);
      box.dataset.elsewhere = "";
      if (!marked) unmark(box);
    }
    if (!changed.length) return;
    const notice = form.querySelector(".elsewhere");
    notice.textContent = notice.dataset.sentence.replace("{boxes}", changed.map(nameOf).join(", "));
  };

  const taken = (ctx) => {
    const answer = new DOMParser().parseFromString(ctx.text, "text/html").querySelector("data.kept");
    if (answer) {
      show(unsaved.confirm(JSON.parse(answer.value), texts()), ctx.sourceElement !== form);
      try {
        sessionStorage.setItem(prefix, String(unsaved.version));
      } catch { /* storage is forbidden */ }
    }
    remember();
    if (form.querySelector(".result").textContent === apology) tell("");
    apology = "";
    retries.succeed();
    clearTimeout(timer);
    clearTimeout(redraw);
    if (ctx.response.headers.get("X-Drawing") === "later") redraw = setTimeout(send, 2000 + 3000 * Math.random());
    for (const box of boxes()) if (unsaved.has(box.name)) unmark(box); // typed on while it was marked
    if (!unsaved.size) say(unsaved.version ? "saved" : "");
    else if (ctx.sourceElement !== form) send();
    else if (output().dataset.state === "saving") say("typing");
  };

  const sentenceOf = (ctx) =>
    new DOMParser().parseFromString(ctx.text, "text/html").querySelector("main p")?.textContent;

  const failed = (ctx) => {
    if (ctx.sourceElement !== form) { // a button was pressed, and someone waits for what it does
      const { unable, unreachable } = form.querySelector(".result").dataset;
      // A bug in what the button does says nothing about saving, so a save that works doesn't take the sentence away.
      const sentence = ctx.response?.status === 500 ? sentenceOf(ctx) : undefined;
      apology = sentence ? "" : ctx.response ? unable : unreachable;
      tell(sentence ?? apology);
    }
    retries.fail(ctx.response?.status);
    if (!retries.isHopeless) return again();
    clearTimeout(timer);
    say("refused");
  };

  // Sending the same again would not help. The server's sentence says why.
  const refused = (ctx) => {
    clearTimeout(timer);
    const closed = ctx.response.headers.get("X-Refused") === "closed";
    const pressed = ctx.sourceElement !== form;
    const words = sentenceOf(ctx);
    if (pressed || (!closed && unsaved.size)) tell(words ?? form.querySelector(".result").dataset.unable);
    if (!pressed) apology = words ?? "";
    if (closed) say(unsaved.size ? "unsaved" : "closed");
    else if (pressed && unsaved.size) send(); // the press was refused, not what is typed
    else if (unsaved.size) say("refused");
  };

  const ours = (ctx) => form.contains(ctx.sourceElement) && !ctx.sourceElement.closest("#agreement");
  document.addEventListener("htmx:config:request", ({ detail: { ctx } }) => {
    if (ctx.sourceElement !== form) return;
    onlyChanges(ctx.request.body);
    ctx.request.timeout = LONGEST_ANSWER_MS;
  });
  document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
    if (ours(ctx) && unsaved.size) say("saving");
  });
  document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
    if (!ours(ctx) || ctx.text === undefined) return; // aborted by a newer one, or an error, which htmx:error tells
    const outcome = outcomeOf(ctx.response.status, ctx.sourceElement === form);
    if (outcome === "taken") taken(ctx);
    else if (outcome === "failed") failed(ctx);
    else refused(ctx);
  });
  document.addEventListener("htmx:error", ({ detail: { ctx } }) => {
    if (ctx && ours(ctx)) failed(ctx);
  });

  addEventListener("online", () => {
    if (unsaved.size) send();
  });
  // Coming back to the page: another device may have changed something, and what waits here is tried again.
  let asked = 0;
  const ask = () => {
    if (document.visibilityState !== "visible" || performance.now() - asked < 1000) return; // one return, two events
    asked = performance.now();
    send();
  };
  addEventListener("focus", ask);
  document.addEventListener("visibilitychange", ask);
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) ask();
  });
  // Leaving before the pause is over: the last words go along without an answer being awaited.
  addEventListener("pagehide", () => {
    if (unsaved.size) {
      navigator.sendBeacon(form.getAttribute("hx-post"), new URLSearchParams(onlyChanges(new FormData(form))));
    }
  });
  addEventListener("load", () => {
    let known = 0; // the version that the tab knew before it was loaded, perhaps after this page had been made
    try {
      unsaved.version = JSON.parse(form.querySelector("data.kept").value).version;
    } catch { /* an older page */ }
    try {
      known = Number(sessionStorage.getItem(prefix));
    } catch { /* storage is forbidden */ }
    setTimeout(() => {
      adopt();
      if (unsaved.version < known && !unsaved.size) send();
    }); // htmx begins in such a turn of its own
  });
})();
