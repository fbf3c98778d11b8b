// On the first page of a visit, text is painted with our upright alone, and the other typefaces are fetched after that:
// nobody waits for them. Later pages have them from the start (data-arriving, page.css).
(() => {
  const root = document.documentElement;
  if (!("arriving" in root.dataset)) return;
  const FACES = ["1em Libertinus Serif", "italic 1em Libertinus Serif", "1em Figtree"];
  new PerformanceObserver(async (_, painted) => {
    painted.disconnect();
    await Promise.allSettled(FACES.map((face) => document.fonts.load(face)));
    delete root.dataset.arriving;
  }).observe({ type: "paint", buffered: true });
})();

// A drawing or a program that is larger than its place scrolls there, with the arrow keys too: only then is it a Tab stop.
(() => {
  const places = ".canvas, .program";
  const measure = (place) => {
    const { overflowX, overflowY } = getComputedStyle(place);
    const scrolls = (overflowX === "auto" && place.scrollWidth > place.clientWidth) ||
      (overflowY === "auto" && place.scrollHeight > place.clientHeight);
    const attributes = { tabindex: "0", role: "group", "aria-label": place.dataset.label };
    for (const [name, value] of Object.entries(attributes)) {
      if (scrolls) place.setAttribute(name, value);
      else place.removeAttribute(name);
    }
  };
  const sizes = new ResizeObserver((changes) => {
    for (const place of new Set(changes.map(({ target }) => target.closest(places)))) if (place) measure(place);
  });
  const observe = () => {
    sizes.disconnect();
    for (const part of document.querySelectorAll(":is(.canvas, .program), .canvas > svg")) sizes.observe(part);
  };
  document.addEventListener("htmx:after:swap", observe);
  observe();
})();

// After a check, the first box that is not right (an empty one only if no other is) comes into sight with what is said below
// its row, and by keyboard or mouse gets the focus; on a touch screen it waits to be touched. After a hint, its row comes
// into sight. A button that went with the old sheet never takes the focus with it.
(() => {
  const narrow = matchMedia("(max-width: 900px)");
  const touch = matchMedia("(hover: none) and (pointer: coarse)");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const MARKED = ":is(.box, .whole)[data-mark]:not([data-mark='right']) :is(input:not([readonly]), select)";
  const FILLED = MARKED.replace("'right'", "'right'], [data-mark='empty'");
  let inSheet = false; // whether the focus was in the sheet before the swap
  let pressed = ""; // the button, which a swap may take away

  // Between what sticks to the upper and the lower edge of the window; the beginning of what is too long for that.
  const show = (element) => {
    if (!element) return;
    const { scrollPaddingTop, scrollPaddingBottom } = getComputedStyle(document.documentElement);
    const room = innerHeight - parseFloat(scrollPaddingTop) - parseFloat(scrollPaddingBottom);
    const block = element.offsetHeight > room ? "start" : narrow.matches ? "center" : "nearest";
    element.scrollIntoView({ block, behavior: still.matches ? "auto" : "smooth" });
  };
  const nextButton = () =>
    document.querySelector(".dock .buttons > :not(.plain)") ??
      document.querySelector(".dock .buttons > :not([hidden])");

  document.addEventListener("htmx:before:swap", ({ detail: { ctx } }) => {
    inSheet = Boolean(document.activeElement.closest("#work, #run"));
    pressed = ctx?.sourceElement?.id;
  });
  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    if (pressed === "check" || pressed === "hand-in") {
      const box = document.querySelector(FILLED) ?? document.querySelector(MARKED);
      if (box) {
        if (!touch.matches || document.activeElement.matches("[data-blank]")) box.focus({ preventScroll: true });
        show(box.closest("tbody"));
      } else if (narrow.matches) nextButton()?.focus({ preventScroll: true });
    }
    if (ctx?.target?.id === "run") ctx.target.focus({ preventScroll: true });
    if (pressed === "hint") show(document.querySelector(".says .hint")?.closest("tbody"));
    const lost = document.activeElement === document.body || !document.activeElement.getClientRects().length;
    const others = ["boxes", "stages"].map((id) => document.getElementById(id)); // the stages once all of them are open
    if (inSheet && lost) [nextButton(), ...others].find(Boolean)?.focus({ preventScroll: true });
  });
})();

// The moment a sheet is all right: the drawing plays through once, from the input to the output, what comes next has the
// focus, and the head runs in the background. It runs once for each sheet and visit; after that its result is only shown again.
(() => {
  const form = () => document.querySelector("#work[data-all-right]");
  const line = () => document.getElementById("agreement");
  const ALL_MS = 1200;
  const PART_MS = 300;
  let right = Boolean(form());

  // Not by a class, which the next drawing that comes from the server would take away. A drawing runs to the right, or
  // down where tokens are columns.
  const playThrough = () => {
    document.getElementById("play")?.removeAttribute("hidden");
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    for (const svg of form().querySelectorAll(".figures svg")) {
      const { left, top } = svg.getBoundingClientRect();
      const distance = (part) => {
        const box = part.getBoundingClientRect();
        return box.left - left + box.top - top;
      };
      const parts = [...svg.querySelectorAll(".arc, .matrix")].map((part) => [distance(part), part]);
      parts.sort(([near], [far]) => near - far);
      for (const [place, [, part]] of parts.entries()) {
        const length = part.getTotalLength?.();
        const frames = length
          ? { strokeDasharray: [length, length], strokeDashoffset: [length, 0] }
          : { opacity: [0.15, 1] };
        const delay = ((ALL_MS - PART_MS) * place) / Math.max(parts.length - 1, 1);
        part.animate(frames, { duration: PART_MS, delay, easing: "ease-out", fill: "backwards" });
      }
    }
  };

  // What the browser remembers of a visit: where the run of a sheet tells its result.
  const result = () => `agreement ${line().dataset.sheet}`;
  const showAgain = () => {
    const address = line() && sessionStorage.getItem(result());
    if (address) htmx.ajax("GET", address, { source: line(), target: line(), swap: "innerHTML" });
    return Boolean(address);
  };

  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    const address = line()?.querySelector(".running")?.getAttribute("hx-get");
    if (address && ctx?.sourceElement === line()) sessionStorage.setItem(result(), address);
    const before = right;
    right = Boolean(form());
    if (before || !right) return;
    if (matchMedia("(max-width: 900px)").matches) form().querySelector(".figures")?.scrollIntoView({ block: "center" });
    playThrough();
    form().querySelector(".dock .buttons > :not(.plain)")?.focus({ preventScroll: true });
    if (line() && !showAgain()) htmx.trigger(line(), "agree");
  });

  document.addEventListener("click", ({ target }) => {
    if (target.id !== "play") return;
    form().querySelector(".figures").scrollIntoView({ block: "nearest" });
    playThrough();
  });
  if (form()) document.getElementById("play")?.removeAttribute("hidden");
  addEventListener("load", showAgain);
})();

// The choices above a sheet: a button opens the sheet with them once one has changed.
(() => {
  const button = document.querySelector("[data-choices] button");
  if (!button) return;
  button.hidden = true;
  button.form.addEventListener("input", () => {
    button.hidden = false;
  });
})();

// Copy buttons: hidden without script or clipboard, they put a link or a block of code on the clipboard.
(() => {
  const reveal = () => {
    for (const button of document.querySelectorAll("[data-copy-link], [data-copy]")) {
      button.hidden = !navigator.clipboard;
    }
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy-link], [data-copy]");
    if (!button) return;
    const { copyLink, copy, done } = button.dataset;
    const source = document.getElementById(copy);
    const parts = [...(source?.querySelectorAll("code") ?? [])]; // of a program in two parts, both
    const texts = (parts.length ? parts : [source]).map((part) => part?.textContent);
    await navigator.clipboard.writeText(copyLink ? new URL(copyLink, location.href).href : texts.join(""));
    const before = button.textContent;
    button.textContent = done;
    setTimeout(() => {
      button.textContent = before;
    }, 2000);
  });
  document.addEventListener("htmx:after:swap", reveal);
  reveal();
})();

// Keeps the address of the page in step with a form: after a swap, an element with data-address says what it is now.
document.addEventListener("htmx:after:swap", () => {
  const addressed = document.querySelector("[data-address]");
  if (addressed && location.pathname === "/handout") {
    history.replaceState(history.state, "", addressed.dataset.address);
  }
});

// The links to a product's exhibit take along what stands in the boxes when they are followed.
document.addEventListener("click", ({ target }) => {
  const link = target.closest("a[data-see]");
  if (!link) return;
  const url = new URL(link.href);
  for (const box of link.closest("form").querySelectorAll("input[data-blank]")) {
    if (box.value) url.searchParams.set(box.name, box.value);
    else url.searchParams.delete(box.name);
  }
  link.href = url;
});

// A page that renews itself, such as the live view, rests while nobody can see it. It says so when it could not be brought
// up to date, so that nobody takes old numbers for new ones.
(() => {
  const floor = document.querySelector("[data-live-view]");
  if (!floor) return;
  // Menus stay open or closed while the rest is brought up to date.
  htmx.registerExtension("live-view", { htmx_before_morph_attr: (_, { attrName }) => attrName !== "open" });
  const show = (ctx, stale) => {
    if (ctx?.sourceElement === floor) document.getElementById("stale").hidden = !stale;
  };
  document.addEventListener("htmx:before:request", (event) => {
    const { ctx } = event.detail;
    if (document.hidden && ctx.sourceElement === floor && ctx.sourceEvent?.type === "every") event.preventDefault();
  });
  document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => show(ctx, ctx.response.status >= 400));
  document.addEventListener("htmx:error", ({ detail: { ctx } }) => show(ctx, true));
})();
