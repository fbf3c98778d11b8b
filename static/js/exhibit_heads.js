// Deal the heads: stripes are lifted with a slider, a query card is dragged or a key card tapped, and what the server
// sends back glides from where it was. Nothing is marked here: every card and every number goes to the server.
(() => {
  const exhibit = document.querySelector(".exhibit.heads");
  if (!exhibit) return;
  const GLIDE_MS = 400;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const form = () => document.getElementById("heads");
  const frame = () => exhibit.querySelector(".frame.shown");
  const numbers = (part) =>
    ((part.style.transform || part.getAttribute("transform") || "").match(/-?[\d.]+/g) || [0, 0]).map(Number);
  const at = ([x, y]) => `translate(${x}px, ${y}px)`;

  exhibit.addEventListener("exhibit:show", () => {
    form().querySelector('[name="step"]').value = frame().id.split("-")[1];
  });

  // A key card changes its own frame alone: one frame is quickly drawn.
  let sliding = false;
  let picked = false;
  document.addEventListener("submit", ({ target, submitter }) => {
    if (target !== form()) return;
    picked = ["key", "dealt"].includes(submitter?.name);
    const id = frame().id;
    const ways = picked
      ? { target: `#${id}`, select: `#${id} > *`, swap: "innerHTML", "select-oob": "#kind" }
      : { target: "#exhibit", select: "#exhibit", swap: "outerMorph", "select-oob": "" };
    for (const [name, way] of Object.entries(ways)) target.setAttribute(`hx-${name}`, way);
    target.elements.alone.disabled = !picked;
    if (submitter?.name === "dealt") target.querySelector('[name="dealt"]').value = submitter.value;
  }, true);

  // While the number of heads slides, its drawing and its line alone are fetched, and at the end all frames, each put in
  // place in a task of its own: so none takes long.
  let fetching = new AbortController();
  let asking = 0; // once for each picture on the screen
  const follow = async (parts, alone) => {
    fetching.abort();
    fetching = new AbortController();
    const { signal } = fetching;
    const query = new URLSearchParams(/** @type {any} */ (new FormData(form())));
    if (alone) query.set("alone", "1");
    const answer = await fetch(`${form().action}?${query}`, { signal });
    if (!answer.ok) throw new Error(answer.statusText);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts) {
      if (signal.aborted) return;
      exhibit.querySelector(part).replaceChildren(...page.querySelector(part).childNodes);
      await new Promise((next) => {
        setTimeout(next);
      });
    }
    settle();
  };
  const settle = () => {
    for (const slider of sliders()) slider.closest(".lift").hidden = false;
    liftAll();
    const typed = /** @type {[string, string][]} */ ([...new FormData(form())].filter(([, text]) => text));
    setTimeout(() => history.replaceState(history.state, "", `?${new URLSearchParams(typed)}`));
  };

  // The number of key/value heads: as soon as one is chosen, also by dragging along the line; all frames at the end.
  exhibit.addEventListener("change", ({ target }) => {
    if (target.name === "groups") form().requestSubmit();
  });
  let stops = []; // each radio button with the right end of its label, measured once before sliding
  exhibit.addEventListener("pointerdown", ({ target, pointerId }) => {
    const track = target.closest(".track");
    if (!track) return;
    target.releasePointerCapture?.(pointerId);
    stops = [...track.children].map((label) => ({ radio: label.control, right: label.getBoundingClientRect().right }));
  });
  exhibit.addEventListener("pointermove", (event) => {
    if (!event.buttons || !event.target.closest(".track")) return;
    const radio = stops.find(({ right }) => event.clientX < right)?.radio;
    if (!radio || radio.checked) return;
    radio.checked = sliding = true;
    cancelAnimationFrame(asking);
    asking = requestAnimationFrame(() => follow([`#${frame().id} .canvas`, "#kind"], true).catch(() => {}));
  });
  const stop = () => {
    if (!sliding) return;
    sliding = false;
    cancelAnimationFrame(asking);
    const frames = [...exhibit.querySelectorAll(".frame")].map(({ id }) => `#${id}`);
    follow(["#kind", ...frames], false).catch(({ name }) => {
      if (name !== "AbortError") form().requestSubmit();
    });
  };
  addEventListener("pointerup", stop);
  addEventListener("pointercancel", stop);

  // Between slab and deck: every card between its stripe and its place, once for each picture on the screen.
  const lift = (slider) => {
    const down = 1 - slider.value / 100;
    for (const card of slider.closest(".frame").querySelectorAll("[data-stripe]")) {
      const rect = card.firstElementChild;
      const [x, y] = (card.dataset.place ??= String(numbers(card))).split(",").map(Number);
      const narrow = 1 + (card.dataset.stripe / rect.getAttribute("width") - 1) * down;
      card.style.transform = at([x, y + down * card.dataset.fall]);
      rect.style.transform = `scaleX(${narrow})`;
    }
  };
  const sliders = () => exhibit.querySelectorAll(".lift input");
  const liftAll = () => {
    for (const slider of sliders()) if (slider.value < 100) lift(slider);
  };
  let next;
  exhibit.addEventListener("input", ({ target }) => {
    if (!target.closest(".lift")) return;
    cancelAnimationFrame(next);
    next = requestAnimationFrame(() => lift(target));
  });

  // A key card is picked by its button; by a tap on it in the drawing, or by dropping the query card on it.
  const pick = (card) => frame().querySelector(`.picks [name="key"][value="${card.dataset.head}"]`)?.click();
  let held;
  // A finger on the query card moves it and not the page: on parts of a drawing, touch-action alone does not count.
  exhibit.addEventListener("touchstart", (event) => {
    if (event.target.closest(".asked")) event.preventDefault();
  }, { passive: false });
  exhibit.addEventListener("pointerdown", (event) => {
    const card = event.target.closest(".asked");
    if (!card) return;
    event.preventDefault();
    const unit = card.ownerSVGElement.viewBox.baseVal.width / card.ownerSVGElement.clientWidth;
    held = { card, unit, from: numbers(card), x: event.clientX, y: event.clientY };
    card.setPointerCapture(event.pointerId);
  });
  exhibit.addEventListener("pointermove", (event) => {
    if (!held) return;
    const [x, y] = held.from;
    held.card.style.transform = at([
      x + (event.clientX - held.x) * held.unit,
      y + (event.clientY - held.y) * held.unit,
    ]);
  });
  const drop = (event) => {
    if (!held) return;
    const { card } = held;
    held = undefined;
    const middle = card.getBoundingClientRect();
    const distance = (key) => {
      const { left, top, width, height } = key.getBoundingClientRect();
      return Math.hypot(
        left + width / 2 - middle.x - middle.width / 2,
        top + height / 2 - middle.y - middle.height / 2,
      );
    };
    const [nearest] = [...frame().querySelectorAll(".key.card")].sort((a, b) => distance(a) - distance(b));
    if (event.type === "pointerup" && nearest && distance(nearest) < 1.5 * middle.width) {
      setTimeout(() => pick(nearest)); // what is drawn comes first
    } else {glide(new Map([[card.dataset.part, numbers(card)]]), () => {
        card.style.transform = "";
      });}
  };
  exhibit.addEventListener("pointerup", drop);
  exhibit.addEventListener("pointercancel", drop);
  exhibit.addEventListener("click", ({ target }) => {
    const card = target.closest(".key.card");
    if (card) pick(card);
  });

  // From where the parts of the frame were to where they are.
  const places = () =>
    new Map([...frame().querySelectorAll(".card[data-part]")].map((part) => [part.dataset.part, numbers(part)]));
  const glide = (before, change = () => {}) => {
    change();
    if (still.matches) return;
    for (const part of frame().querySelectorAll(".card[data-part]")) {
      const [from, to] = [before.get(part.dataset.part), numbers(part)];
      if (!from) part.animate({ opacity: [0, 1] }, { duration: GLIDE_MS, easing: "ease-out" });
      else if (String(from) !== String(to)) {
        part.animate({ transform: [at(from), at(to)] }, { duration: GLIDE_MS, easing: "ease-in-out" });
      }
    }
  };
  let before = new Map();
  document.addEventListener("htmx:before:swap", () => {
    before = places();
  });
  document.addEventListener("htmx:after:swap", () => {
    for (const card of exhibit.querySelectorAll(".card[style]")) {
      card.removeAttribute("style");
      delete card.dataset.place;
    }
    glide(before);
    settle();
    setTimeout(() => {
      const next = ["[data-next]", ".picks [aria-pressed]", ".picks button"].map((each) => frame().querySelector(each))
        .find(Boolean);
      if (picked) next?.focus({ preventScroll: true });
    });
  });

  // Arrow keys go along the key cards; Enter in a box checks it.
  exhibit.addEventListener("keydown", (event) => {
    const along = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const picks = [...(event.target.closest(".picks")?.querySelectorAll("button") ?? [])];
    if (along && picks.length > 1) {
      event.preventDefault();
      picks.at((picks.indexOf(event.target) + along) % picks.length).focus();
    }
    const boxes = event.target.closest(".deck-boxes");
    if (event.key === "Enter" && boxes && event.target.matches("input")) {
      event.preventDefault();
      boxes.querySelector("button").click();
    }
  });
  for (const slider of sliders()) slider.closest(".lift").hidden = false;
})();
