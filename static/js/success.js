// The moment a sheet is all right: the arcs of the drawing close once, from left to right, what comes next has the focus,
// and the head runs in the background. It runs once for each sheet and visit; after that its result is only shown again.
(() => {
  const form = () => document.querySelector("#work[data-all-right]");
  const line = () => document.getElementById("agreement");
  const ALL_ARCS_MS = 600;
  const ARC_MS = 250;
  let right = Boolean(form());

  // Not by a class, which the next drawing that comes from the server would take away.
  const closeArcs = () => {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const arcs = [...form().querySelectorAll(".figures .arc")].map((arc) => [arc.getBoundingClientRect().left, arc]);
    arcs.sort(([left], [other]) => left - other);
    for (const [place, [, arc]] of arcs.entries()) {
      const length = arc.getTotalLength();
      arc.animate(
        { strokeDasharray: [length, length], strokeDashoffset: [length, 0] },
        {
          duration: ARC_MS,
          delay: ((ALL_ARCS_MS - ARC_MS) * place) / Math.max(arcs.length - 1, 1),
          easing: "ease-out",
          fill: "backwards",
        },
      );
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
    closeArcs();
    form().querySelector(".dock .buttons > :not(.plain)")?.focus({ preventScroll: true });
    if (line() && !showAgain()) htmx.trigger(line(), "agree");
  });

  addEventListener("load", showAgain);
})();
