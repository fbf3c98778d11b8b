// The last ten minutes of an activity are counted down by the server's clock, and said aloud at ten, five and one.
// When the time is up, the page asks the server, which knows of a later closing time or extra time.
(() => {
  const LAST_MS = 600_000;
  const SPREAD_MS = 3000; // so that a whole class does not ask in the same instant
  const started = performance.now();
  let shown = null; // the element of the time that is counted down, its end on this page's clock, and what was said
  let saidAt = Infinity;

  const read = () => {
    const time = document.querySelector(".closing [data-closes]");
    if (time === shown?.time) return;
    const served = shown ? performance.now() : started;
    shown = time &&
      { time, end: served + Date.parse(time.dataset.closes) - Date.parse(time.dataset.now), asked: false };
  };

  const ask = () => {
    shown.asked = true;
    setTimeout(
      () => document.getElementById("closing")?.dispatchEvent(new Event("closing-time")),
      Math.random() * SPREAD_MS,
    );
  };

  const tick = () => {
    read();
    if (!shown) return;
    const left = shown.end - performance.now();
    const seconds = Math.max(Math.ceil(left / 1000), 0);
    const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    shown.time.textContent = left < LAST_MS ? shown.time.dataset.left.replace("{time}", clock) : "";
    const milestone = [1, 5, 10].find((minutes) => seconds <= minutes * 60) ?? Infinity;
    if (milestone < saidAt && seconds > 0) {
      const spoken = shown.time.parentElement.querySelector("[data-minutes]");
      spoken.textContent = spoken.dataset.minutes.replace("{minutes}", Math.ceil(seconds / 60));
    }
    saidAt = milestone;
    if (left <= 0 && !shown.asked) ask();
  };
  setInterval(tick, 500);
  tick();
  // A page that somebody comes back to, or whose save was refused, asks at once.
  const now = () => document.getElementById("closing")?.dispatchEvent(new Event("closing-time"));
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") now();
  });
  document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => {
    if (ctx.response?.headers?.get("X-Refused") === "closed") now();
  });
})();
