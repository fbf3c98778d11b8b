// The projector's clock and countdown, by the server's time, its menu for closing, and the button for the full screen.
(() => {
  const clock = document.querySelector("[data-clock]");
  const ahead = Date.parse(clock.dataset.now) - Date.now();
  const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: clock.dataset.zone });
  const tick = () => {
    const now = Date.now() + ahead;
    clock.textContent = time.format(now);
    const closes = document.querySelector("[data-closes]");
    if (!closes) return;
    const seconds = Math.max(Math.round((Date.parse(closes.dataset.closes) - now) / 1000), 0);
    const minutes = Math.floor(seconds / 60);
    closes.textContent = minutes < 100 ? `${minutes}:${String(seconds % 60).padStart(2, "0")}` : "";
  };
  setInterval(tick, 500);
  document.addEventListener("htmx:after:swap", tick);
  tick();

  // The menu stays open while the page is brought up to date, until Close is pressed in it; Undo is in focus then.
  let pressed = false;
  htmx.registerExtension("present", {
    htmx_before_morph_attr: (_, { attrName, newValue }) => attrName !== "open" || newValue !== null, // false: stays as it is
  });
  document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => {
    const menu = ctx.sourceElement.closest("details");
    if (!menu) return;
    menu.open = false;
    pressed = true;
  });
  document.addEventListener("htmx:after:swap", () => {
    const undo = document.getElementById("undo-close");
    if (pressed && undo) {
      undo.focus();
      pressed = false;
    }
  });

  // The address is that of what is shown, so that a reload changes nothing.
  document.addEventListener("htmx:after:swap", () => {
    history.replaceState(history.state, "", document.getElementById("view").dataset.address);
  });

  // ← and → go to the sheet before and after, C shows the join code or the progress, Esc leaves; not out of a menu.
  document.addEventListener("keydown", (event) => {
    const taken = event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, details");
    if (taken || document.fullscreenElement && event.key === "Escape") return;
    const tab = document.querySelector(".sheet-tabs [aria-current]")?.closest("li");
    const beside = { ArrowLeft: tab?.previousElementSibling, ArrowRight: tab?.nextElementSibling }[event.key];
    const key = event.key.length > 1 ? event.key : event.key.toLowerCase();
    (beside?.querySelector("a") ?? document.querySelector(`[data-key="${CSS.escape(key)}"]`))?.click();
  });

  const full = document.querySelector("[data-full-screen]");
  full.hidden = !document.fullscreenEnabled;
  full.addEventListener("click", () => {
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen();
  });
})();
