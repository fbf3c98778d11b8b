// The projector’s clock and countdown, by the server’s time, its keys, and the button for the full screen.
(() => {
  const clock = () => document.querySelector("[data-clock]");
  const ahead = Date.parse(clock().dataset.now) - Date.now();
  const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: clock().dataset.zone });
  const tick = () => {
    const now = Date.now() + ahead;
    clock().textContent = time.format(now);
    const closes = document.querySelector("[data-closes]");
    if (!closes) return;
    const seconds = Math.max(Math.round((Date.parse(closes.dataset.closes) - now) / 1000), 0);
    const minutes = Math.floor(seconds / 60);
    closes.textContent = minutes < 100 ? `${minutes}:${String(seconds % 60).padStart(2, "0")}` : "";
  };
  setInterval(tick, 500);

  const fullScreen = () => {
    document.querySelector("[data-full-screen]").hidden = !document.fullscreenEnabled;
  };
  document.addEventListener("click", ({ target }) => {
    if (!target.closest("[data-full-screen]")) return;
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen();
  });
  document.addEventListener("htmx:after:swap", () => {
    tick();
    fullScreen();
  });
  tick();
  fullScreen();

  // ← and → go from view to view, Esc leaves.
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || document.fullscreenElement && event.key === "Escape") return;
    const pressed = document.querySelector("#floor .seg [aria-pressed=true]");
    const beside = { ArrowLeft: pressed?.previousElementSibling, ArrowRight: pressed?.nextElementSibling }[event.key];
    const key = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    (beside?.matches("button") ? beside : key)?.click();
  });
})();
