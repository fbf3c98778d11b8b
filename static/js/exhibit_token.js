// One more token: a new row slides onto the cached ones, and a press on the drawing brings the next token.
(() => {
  const SLIDE_MS = 550;
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
  // The arrow keys step from the switch too, which has no use for them.
  exhibit.querySelector("#without-cache").addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    go(by);
  });
})();
