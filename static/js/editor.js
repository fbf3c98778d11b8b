// An editor's form after the server has sent it again: what was typed meanwhile stays, and what the server has changed
// (a checkbox, a menu, the focus after a button) is as it says. What is not saved is not left without being asked.
// A preview never takes the place of what a button has asked for: it is made after it.
(() => {
  const form = document.getElementById("editor");
  if (!form) return;
  let touched = new Set(); // fields that were changed since what the last request has sent was read
  let sinceRead = new Set(); // since the form was last read, for a request that may still be dropped
  let unsaved = form.hasAttribute("data-unsaved");

  form.addEventListener("input", ({ target }) => {
    touched.add(target);
    sinceRead.add(target);
    unsaved = true;
  });
  form.addEventListener("submit", () => {
    unsaved = false;
  });
  form.addEventListener("focusin", ({ target }) => { // a field that is clicked may be half behind the bar with Save
    if (!target.closest(".save")) target.scrollIntoView({ block: "nearest" });
  });
  addEventListener("beforeunload", (event) => {
    if (unsaved) event.preventDefault();
  });

  document.addEventListener("htmx:config:request", () => {
    sinceRead = new Set();
  });
  document.addEventListener("htmx:before:request", () => {
    touched = sinceRead;
  });
  htmx.registerExtension("editor", { // what returns false stays as it is
    htmx_before_morph_node: (_, { oldNode, newNode }) => !touched.has(oldNode) && !newNode.matches?.("[data-stale]"),
    htmx_before_morph_attr: (_, { attrName, newValue }) => attrName !== "open" || newValue !== null,
  });
  document.addEventListener("htmx:finally:request", () => { // a preview that was due meanwhile
    setTimeout(() => {
      if (touched.size) form.dispatchEvent(new Event("catch-up"));
    });
  });
  // Attributes are what the server says; properties are what the browser shows once a field was touched.
  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    for (const field of form.elements) {
      if (touched.has(field)) continue;
      if (field.type === "checkbox" || field.type === "radio") field.checked = field.defaultChecked;
      else if (field.tagName === "SELECT") {
        for (const option of field.options) option.selected = option.defaultSelected;
      } else if (field !== document.activeElement && "defaultValue" in field && field.type !== "file") {
        field.value = field.defaultValue;
      }
    }
    if (ctx?.sourceElement?.name !== "arrange") return;
    unsaved = true;
    form.querySelector("[autofocus]")?.focus();
  });
})();
