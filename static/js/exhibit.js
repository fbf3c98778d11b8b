// An exhibit shows one frame at a time: Back, Next and the arrow keys step, the address holds the step, and a part that
// two frames share moves from its place in one to its place in the other. Scripts of single exhibits listen for
// "exhibit:show" (detail: frame, before) and send "exhibit:go" (detail: the number of a step) to the exhibit.
(() => {
  const MOVE_MS = 550;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const parts = (frame) => new Map([...frame.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
  // Where a part stands, as CSS has it.
  const place = (part) => {
    const [x = 0, y = 0] = (part.getAttribute("transform") || "").match(/-?[\d.]+/g) || [];
    return `translate(${x}px, ${y}px)`;
  };

  const move = (before, frame) => {
    const old = parts(before);
    for (const [key, part] of parts(frame)) {
      const from = old.get(key);
      if (!from) part.animate({ opacity: [0, 1] }, { duration: MOVE_MS, easing: "ease-out" });
      else if (from.style.transform || from.getAttribute("transform") !== part.getAttribute("transform")) {
        part.animate({ transform: [from.style.transform || place(from), place(part)] }, {
          duration: MOVE_MS,
          easing: "ease-in-out",
        });
      }
    }
  };

  for (const exhibit of document.querySelectorAll(".exhibit")) {
    const frames = [...exhibit.querySelectorAll(".frame")];
    const status = exhibit.querySelector("[data-tells]");
    const said = exhibit.querySelector(".said");
    const links = [...exhibit.querySelectorAll("[data-go]")];
    let now = Number(exhibit.dataset.step) - 1;

    const address = (index) => {
      const url = new URL(location.href);
      url.searchParams.set("step", index + 1);
      return url;
    };
    const show = (index) => {
      const next = Math.max(0, Math.min(index, frames.length - 1));
      if (next === now) return;
      const [before, frame] = [frames[now], frames[next]];
      before.classList.remove("shown");
      frame.classList.add("shown");
      if (!still.matches) move(before, frame);
      now = next;
      exhibit.dataset.step = now + 1;
      status.textContent = frame.querySelector(".says").textContent.trim();
      said.textContent = "";
      const where = exhibit.querySelector(".where .now"); // cards that fit are "now" too
      if (where) where.textContent = now + 1;
      for (const link of links) {
        const to = now + Number(link.dataset.go);
        link.toggleAttribute("aria-disabled", false);
        if (to < 0 || to >= frames.length) link.setAttribute("aria-disabled", "true");
        else link.href = address(to);
      }
      // What had the focus is hidden now: it goes to what there is to do in the new frame, or to Next.
      if (before.contains(document.activeElement)) {
        (frame.querySelector('.canvas [tabindex="0"]') || links.at(-1)).focus({ preventScroll: true });
      }
      setTimeout(() => history.replaceState(history.state, "", address(now))); // the frame is drawn first
      exhibit.dispatchEvent(new CustomEvent("exhibit:show", { detail: { frame, before } }));
    };

    exhibit.addEventListener("exhibit:go", ({ detail }) => show(detail - 1));
    exhibit.addEventListener("click", (event) => {
      const link = event.target.closest("[data-go]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      show(now + Number(link.dataset.go));
    });
    // Wherever the focus is, but for boxes and menus; what takes the arrow keys for itself prevents their default.
    document.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const taken = event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
      if (!step || taken || event.target.closest("input, select, textarea, summary, .canvas [tabindex]")) return;
      event.preventDefault();
      show(now + step);
    });
    exhibit.classList.add("live");
    if (frames.length) {
      exhibit.dispatchEvent(new CustomEvent("exhibit:show", { detail: { frame: frames[now], before: null } }));
    }
  }
})();
