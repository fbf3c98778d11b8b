// On a narrow screen the answer to a button may be out of sight: after a check, the first box that is not right gets the
// focus; after a hint, the hint is scrolled to. On a wide screen the focus stays where it is.
(() => {
  const narrow = matchMedia("(max-width: 900px)");
  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    const pressed = ctx?.sourceElement?.id;
    if (!narrow.matches || !(pressed === "check" || pressed === "hint")) return;
    const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
    const box = document.querySelector(".box[data-mark]:not([data-mark='right']) input");
    const shown = pressed === "hint" ? document.querySelector(".hints .hint") : box;
    if (pressed === "check") box?.focus({ preventScroll: true });
    shown?.scrollIntoView({ block: "center", behavior });
  });
})();
