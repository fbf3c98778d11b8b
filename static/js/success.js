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

  addEventListener("load", showAgain);
})();
