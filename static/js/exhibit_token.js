// One more token: a new row slides onto the cached ones, a press on the drawing brings the next token, and "+1 token" held
// down brings one after the other.
(() => {
  const SLIDE_MS = 550;
  const [HOLD_MS, REPEAT_MS] = [450, 300];
  const exhibit = document.querySelector(".exhibit.token");
  if (!exhibit) return;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const go = (by) =>
    exhibit.dispatchEvent(new CustomEvent("exhibit:go", { detail: Number(exhibit.dataset.step) + by }));

  exhibit.addEventListener("exhibit:show", ({ detail: { frame, before } }) => {
    if (!before || still.matches) return;
    const had = new Set([...before.querySelectorAll("[data-part]")].map((part) => part.dataset.part));
    for (const part of frame.querySelectorAll("[data-from]")) {
      if (had.has(part.dataset.part)) continue;
      const from = part.dataset.from.split(" ").map((px) => `${px}px`).join(" ");
      part.animate({ translate: [from, "0px 0px"] }, { duration: SLIDE_MS, easing: "ease-in-out" });
    }
  });
  exhibit.addEventListener("click", (event) => {
    if (event.target.closest(".canvas")) go(1);
  });
  // Held down, it stops at a question and after the last token; the click at its end is then no further token.
  const next = exhibit.querySelector('[data-go="1"]');
  let timer = 0;
  let repeated = false;
  const release = () => clearInterval(timer);
  const repeat = () => {
    repeated = true;
    if (exhibit.querySelector(".frame.shown form")) release();
    else go(1);
  };
  next?.addEventListener("pointerdown", ({ button }) => {
    repeated = false;
    release();
    if (!button) timer = setTimeout(() => (timer = setInterval(repeat, REPEAT_MS)), HOLD_MS);
  });
  for (const end of ["pointerup", "pointerleave", "pointercancel"]) next?.addEventListener(end, release);
  next?.addEventListener("contextmenu", (event) => event.preventDefault()); // what a finger held down would open
  next?.addEventListener("click", (event) => {
    if (!repeated) return;
    event.preventDefault();
    event.stopPropagation();
    repeated = false;
  });
  // The arrow keys step from the switch too, which has no use for them.
  exhibit.querySelector("#without-cache").addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    go(by);
  });
})();
