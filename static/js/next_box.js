// After a check, the first box that is not right (an empty one only if no other is) gets the focus, with its sentence in view; after a hint, the hint is
// shown. A button that went with the old sheet never takes the focus with it.
(() => {
  const narrow = matchMedia("(max-width: 900px)");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const MARKED = ".box[data-mark]:not([data-mark='right']) input:not([readonly])";
  const FILLED = MARKED.replace("'right'", "'right'], [data-mark='empty'");
  let inSheet = false; // whether the focus was in the sheet before the swap

  const show = (element, block) => element?.scrollIntoView({ block, behavior: still.matches ? "auto" : "smooth" });
  const nextButton = () => document.querySelector(".dock .buttons > :not(.plain)") ?? document.querySelector(".dock .buttons > :not([hidden])");

  document.addEventListener("htmx:before:swap", () => { inSheet = Boolean(document.activeElement.closest("#work, #run")); });
  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    const pressed = ctx?.sourceElement?.id;
    if (pressed === "check" || pressed === "hand-in") {
      const box = document.querySelector(FILLED) ?? document.querySelector(MARKED);
      if (box) {
        box.focus({ preventScroll: true });
        show(box.closest("tbody"), narrow.matches ? "center" : "nearest");
      } else if (narrow.matches) nextButton()?.focus();
    }
    if (ctx?.target?.id === "run") ctx.target.focus({ preventScroll: true });
    if (pressed === "hint") show(document.querySelector(".hints .hint"), narrow.matches ? "center" : "nearest");
    const lost = document.activeElement === document.body || !document.activeElement.getClientRects().length;
    if (inSheet && lost) (nextButton() ?? document.getElementById("boxes")).focus();
  });
})();
