// The arrow keys step through an exhibit as Back and Next do, except in boxes and menus.
document.addEventListener("keydown", (event) => {
  const rel = { ArrowRight: "next", ArrowLeft: "prev" }[event.key];
  if (!rel || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (event.target.closest("input:not([type=checkbox]), select, textarea, summary")) return;
  event.preventDefault();
  document.querySelector(`.stepping [rel=${rel}]:not([aria-disabled])`)?.click();
});

// The address is that of the step that is shown.
document.addEventListener("htmx:after:swap", () => {
  const exhibit = document.querySelector("#exhibit");
  if (exhibit) history.replaceState(history.state, "", exhibit.dataset.step);
});
