// Slide it together: the left operand is dragged, tapped or moved by arrow keys; where it meets the other one its inner
// side swings up, and closes or bounces off.
(() => {
  const exhibit = document.querySelector(".exhibit.slide");
  if (!exhibit) return;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const go = (step) => exhibit.dispatchEvent(new CustomEvent("exhibit:go", { detail: step }));
  const number = (part) => Number(part.closest(".frame").id.replace("step-", ""));
  const NEAR = 0.6; // of the way: let go from here on, it goes on by itself
  const KEY_STEPS = 4; // presses of an arrow key for the whole way

  for (const part of exhibit.querySelectorAll("[data-moves]")) {
    const way = Number(part.dataset.moves);
    const [x, y] = part.getAttribute("transform").match(/-?[\d.]+/g).map(Number);
    const svg = part.ownerSVGElement;
    let share = 0; // of the way
    let from = null; // the pointer's place when it was pressed
    let wanted = 0;
    const draw = () => { part.style.transform = `translate(${x}px, ${y + way * share}px)`; };
    const place = (next) => {
      share = Math.max(0, Math.min(1, next));
      cancelAnimationFrame(wanted);
      wanted = requestAnimationFrame(draw);
    };
    const meet = () => {
      go(number(part) + 1);
      share = 0;
      cancelAnimationFrame(wanted);
      part.style.removeProperty("transform");
    };

    svg.setAttribute("role", "group");
    part.setAttribute("role", "button");
    part.setAttribute("tabindex", "0");
    part.setAttribute("aria-label", part.dataset.label);
    part.addEventListener("pointerdown", (event) => {
      part.setPointerCapture(event.pointerId);
      from = { at: event.clientY, share, scale: svg.getScreenCTM().d, moved: false };
    });
    part.addEventListener("pointermove", (event) => {
      if (!from) return;
      const by = event.clientY - from.at;
      from.moved ||= Math.abs(by) > 4;
      place(from.share + by / from.scale / way);
    });
    const release = (event) => {
      if (!from) return;
      const { moved } = from;
      from = null;
      if (event.type === "pointerup" && (!moved || share > NEAR)) meet();
      else place(0);
    };
    part.addEventListener("pointerup", release);
    part.addEventListener("pointercancel", release);
    part.addEventListener("keydown", (event) => {
      const by = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[event.key];
      if (by) place(share + by / KEY_STEPS);
      else if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      if (!by || share >= 1) meet();
    });
  }

  exhibit.addEventListener("exhibit:show", ({ detail: { frame, before } }) => {
    const part = (key, of = frame) => of.querySelector(`[data-part="${key}"]`);
    const swung = part("swung");
    if (!before || still.matches || !swung || number(before.firstElementChild) > number(swung)) return;
    const [x, y] = swung.getAttribute("transform").match(/-?[\d.]+/g).map(Number);
    const turned = (angle) => `translate(${x}px, ${y}px) rotate(${angle}deg)`;
    swung.animate({ transform: [turned(-90), turned(0)] }, { delay: 450, duration: 500, easing: "ease-in", fill: "backwards" });
    part("verdict").animate({ opacity: [0, 1, 0.2, 1] }, { delay: 950, duration: 700, fill: "backwards" });
    if (swung.dataset.how !== "mismatch") return;
    const left = part("left");
    const [, rest] = left.getAttribute("transform").match(/-?[\d.]+/g).map(Number);
    const at = (to) => `translate(${left.transform.baseVal[0].matrix.e}px, ${to}px)`;
    left.animate({ transform: [at(rest - 16), at(rest + 10), at(rest)] }, { delay: 950, duration: 500, easing: "ease-out" });
  });
})();
