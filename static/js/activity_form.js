// The form of an activity: worksheets are dragged into order, one field narrows the lists of what can be chosen, and an
// exit ticket brings its proposal with it; what is chosen is named beside Save. The first two only save a trip to the server: the buttons ↑ ↓ and Search do the same, and the order of the boxes is what is sent.
(() => {
  const form = document.querySelector("#activity-form");
  const status = () => form.querySelector("[role=status]");

  // Dragging: the line follows the pointer by changing places with its neighbours.
  let dragged = null; // the line, and the line before which it stood

  const arm = () => {
    for (const grip of form.querySelectorAll(".grip[hidden]")) grip.hidden = false;
  };

  const settle = (list) => {
    const lines = [...list.children];
    for (const [index, line] of lines.entries()) {
      const [up, down] = line.querySelectorAll(".moves button");
      up.ariaDisabled = index === 0 || null;
      down.ariaDisabled = index === lines.length - 1 || null;
    }
  };

  const drop = (event) => {
    if (!dragged) return;
    const { line, next, list } = dragged;
    dragged = null;
    line.classList.remove("dragged");
    if (event.type === "pointercancel") list.insertBefore(line, next);
    settle(list);
    const number = [...list.children].indexOf(line) + 1;
    const sentence = list.dataset.arranged.replace("{title}", line.dataset.title).replace("{number}", number);
    if (line.nextElementSibling !== next) status().textContent = sentence.replace("{count}", list.children.length);
  };

  form.addEventListener("pointerdown", (event) => {
    const grip = event.target.closest(".grip");
    if (!grip || event.button) return;
    event.preventDefault();
    const line = grip.closest("li");
    dragged = { line, list: line.parentElement, next: line.nextElementSibling };
    line.classList.add("dragged");
  });

  document.addEventListener("pointermove", (event) => {
    if (!dragged) return;
    const { line, list } = dragged;
    const { previousElementSibling: above, nextElementSibling: below } = line;
    const middle = (other) => {
      const { top, height } = other.getBoundingClientRect();
      return top + height / 2;
    };
    if (above && event.clientY < middle(above)) list.insertBefore(line, above);
    else if (below && event.clientY > middle(below)) list.insertBefore(below, line);
    else return;
    line.scrollIntoView({ block: "nearest" });
  });
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, drop);

  // A button at the end of its way does nothing.
  form.addEventListener("click", (event) => {
    if (event.target.closest("[aria-disabled=true]")) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
  }, true);

  // Narrowing: what does not have every word is hidden, with the headings that nothing is left under.
  const narrow = (field) => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const entry of form.querySelectorAll("[data-words]")) {
      const text = entry.dataset.words.toLowerCase();
      const keeps = entry.querySelector("input").checked;
      entry.hidden = !keeps && !words.every((word) => text.includes(word));
    }
    for (const group of form.querySelectorAll("[data-group]")) {
      group.hidden = ![...group.querySelectorAll("[data-words]")].some((entry) => !entry.hidden);
      if (group.matches("details") && words.length) group.open = true;
    }
    const none = form.querySelector(".none");
    none.textContent = form.querySelector("details[data-group]:not([hidden])") ? "" : none.dataset.none;
  };
  form.addEventListener("input", ({ target }) => {
    if (target.matches("[data-narrows]")) narrow(target);
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches("[data-narrows]")) event.preventDefault();
  });

  // What is ticked stands beside Save.
  const fillBasket = () => {
    const ticked = [...form.querySelectorAll("[name=worksheet]:checked + span")];
    const titles = ticked.map((title) => title.firstChild.textContent.trim()).join(", ");
    const { chosen, none } = form.querySelector(".basket").dataset;
    form.querySelector(".basket").textContent = titles ? chosen.replace("{titles}", titles) : none;
  };

  // An exit ticket that is chosen proposes whether it has names.
  form.addEventListener("change", ({ target }) => {
    if (target.name === "worksheet") fillBasket();
    const { anonymous } = target.dataset;
    if (anonymous) form.querySelector(`[name=ticket_anonymous][value=${anonymous}]`).checked = true;
  });

  // A group that was opened stays open when the server sends the lists again.
  htmx.registerExtension("activity-form", {
    htmx_before_morph_attr: (_, { attrName, newValue }) => attrName !== "open" || newValue !== null, // false: stays as it is
  });
  document.addEventListener("htmx:after:swap", arm);
  arm();
})();
