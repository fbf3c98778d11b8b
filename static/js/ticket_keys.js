// Starring by keyboard: j and k go from one answer's star button to the next, s presses it. Not while a field has focus.
(() => {
  const line = document.querySelector("[data-ticket-keys]");
  if (!line) return;
  const box = line.querySelector("input");
  const name = "ticket-keys-off";
  line.hidden = false;
  box.checked = localStorage.getItem(name) === null;
  box.addEventListener("change", () => {
    if (box.checked) localStorage.removeItem(name);
    else localStorage.setItem(name, "yes");
  });

  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    const field = target.matches("select, textarea, [contenteditable], input:not([type=checkbox])");
    if (!box.checked || field || event.ctrlKey || event.altKey || event.metaKey || !"jks".includes(key)) return;
    const stars = [...document.querySelectorAll(".ticket-answers [id^=starred-]")];
    const at = stars.indexOf(document.activeElement.closest?.(".ticket-answers li")?.querySelector("[id^=starred-]"));
    if (key === "s") stars[at]?.click();
    else stars[key === "j" ? Math.min(at + 1, stars.length - 1) : Math.max(at - 1, 0)]?.focus();
    event.preventDefault();
  });
})();
