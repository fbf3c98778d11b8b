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
