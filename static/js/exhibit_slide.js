// Slide it together: the left operand is dragged, tapped or moved by arrow keys; where it meets the other one its inner
// side swings up, and closes or bounces off.
(() => {
  const exhibit = document.querySelector(".exhibit.slide");
  if (!exhibit) return;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const narrow = matchMedia("(width <= 600px)");
  const go = (step) => exhibit.dispatchEvent(new CustomEvent("exhibit:go", { detail: step }));
  const number = (part) => Number(part.closest(".frame").id.replace("step-", ""));
  const CELL = 16; // px, as axes.py has it
  const BOUNCE = 16; // px, as stage.py has it
  const NEAR = 0.6; // of the way: let go from here on, it goes on by itself
  const KEY_STEPS = 4; // presses of an arrow key for the whole way

  for (const part of exhibit.querySelectorAll("[data-moves]")) {
    const way = Number(part.dataset.moves);
    const [x, y] = part.getAttribute("transform").match(/-?[\d.]+/g).map(Number);
    const svg = part.ownerSVGElement;
    let share = 0; // of the way
    let from = null; // the pointer's place when it was pressed
    let wanted = 0;
    const draw = () => {
      part.style.transform = `translate(${x}px, ${y + way * share}px)`;
    };
    const place = (next) => {
      share = Math.max(0, Math.min(1, next));
      part.setAttribute("aria-valuenow", Math.round(share * KEY_STEPS));
      cancelAnimationFrame(wanted);
      wanted = requestAnimationFrame(draw);
    };
    const meet = () => {
      go(number(part) + 1);
      place(0);
      cancelAnimationFrame(wanted);
      part.style.removeProperty("transform");
    };

    svg.setAttribute("role", "group");
    part.setAttribute("role", "slider");
    part.setAttribute("aria-orientation", "vertical");
    part.setAttribute("aria-valuemin", 0);
    part.setAttribute("aria-valuemax", KEY_STEPS);
    part.setAttribute("aria-valuenow", 0);
    part.setAttribute("tabindex", "0");
    part.setAttribute("aria-label", part.dataset.label);
    // A finger on it moves it and not the page: for parts of a drawing the stylesheet's touch-action does not count.
    part.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
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

  // The cells of the result to choose from: a grid, through which the arrow keys go.
  const SVG = "http://www.w3.org/2000/svg";
  for (const part of exhibit.querySelectorAll("[data-cells]")) {
    const { cells, asked, name, wrong } = part.dataset;
    const [rows, columns] = cells.split(" ").map(Number);
    const names = { row: part.dataset.rows.split("|"), column: part.dataset.columns.split("|") };
    const body = part.querySelector(".body");
    const fill = (text, row, column) =>
      text.replace("%(row)s", names.row[row]).replace("%(column)s", names.column[column]);
    const add = (parent, tag, attributes) => {
      const element = document.createElementNS(SVG, tag);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      return parent.appendChild(element);
    };
    const grid = add(part, "g", {
      role: "grid",
      "aria-label": part.closest(".frame").querySelector(".asks").textContent,
    });
    const choices = [...Array(rows).keys()].map((row) => {
      const line = add(grid, "g", { role: "row" });
      return [...Array(columns).keys()].map((column) =>
        add(line, "rect", {
          class: "choice",
          role: "gridcell",
          tabindex: row + column ? -1 : 0,
          "aria-label": fill(name, row, column),
          x: CELL * column,
          y: CELL * row,
          width: CELL,
          height: CELL,
          "data-at": `${row} ${column}`,
        })
      );
    });
    body.ownerSVGElement.setAttribute("role", "group");
    // On a phone these cells fill the window, with the names of rows and columns beside them, so that a finger meets one.
    names.row.forEach((text, row) => {
      add(part, "text", { class: "word near", x: -4, y: CELL * (row + .7), "text-anchor": "end" }).textContent = text;
    });
    names.column.forEach((text, column) => {
      const [x, y] = [CELL * (column + .6), -5];
      add(part, "text", { class: "word near", x, y, transform: `rotate(-50 ${x} ${y})` }).textContent = text;
    });
    if (narrow.matches) {
      const [x, y] = part.getAttribute("transform").match(/-?[\d.]+/g).map(Number);
      const box = [x - 50, y - 44, CELL * columns + 60, CELL * rows + 54];
      body.ownerSVGElement.setAttribute("viewBox", box.join(" "));
      body.ownerSVGElement.classList.add("near-to");
    }
    const choose = (choice) => {
      if (choice.dataset.at === asked) {
        go(number(part) + 1);
        return;
      }
      choice.classList.add("missed");
      exhibit.querySelector(".said").textContent = fill(wrong, ...choice.dataset.at.split(" ").map(Number));
    };
    grid.addEventListener("click", ({ target }) => {
      if (target.dataset.at) choose(target);
    });
    grid.addEventListener("keydown", (event) => {
      const [row, column] = event.target.dataset.at.split(" ").map(Number);
      const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (by) {
        const next = choices[row + by[0]]?.[column + by[1]];
        next?.setAttribute("tabindex", 0);
        if (next) event.target.setAttribute("tabindex", -1);
        next?.focus();
      } else if (event.key === "Enter" || event.key === " ") choose(event.target);
      else return;
      event.preventDefault();
    });
  }

  exhibit.addEventListener("exhibit:show", ({ detail: { frame, before } }) => {
    if (!before || still.matches || number(before) > number(frame)) return;
    const part = (key) => frame.querySelector(`[data-part="${key}"]`);
    const place = (element) => (element.getAttribute("transform") || "0 0").match(/-?[\d.]+/g).map(Number);
    const after = (element, frames, delay, duration) =>
      element.animate(frames, { delay, duration, easing: "ease-in-out", fill: "backwards" });
    const swung = part("swung");
    if (swung) {
      const [x, y] = place(swung);
      const turned = (angle) => `translate(${x}px, ${y}px) rotate(${angle}deg)`;
      after(swung, { transform: [turned(-90), turned(0)] }, 450, 500);
      after(part("verdict"), { opacity: [0, 1, 0.2, 1] }, 950, 700);
    }
    if (frame.dataset.key === "bounce") {
      const [x, y] = place(part("left"));
      const at = (by) => `translate(${x}px, ${y + by}px)`;
      after(part("left"), { transform: [at(-BOUNCE), at(BOUNCE / 2), at(0)] }, 950, 450);
    }
    if (frame.dataset.key === "cell") {
      // One number after the other: the row from the left, the column from above, both into the cell.
      const grow = (mark, from) => mark.animate({ clipPath: [from, "inset(0)"] }, { duration: 900, easing: "linear" });
      grow(part("row-strip").querySelector("rect"), "inset(0 100% 0 0)");
      grow(part("column-strip").querySelector("rect"), "inset(0 0 100% 0)");
      after(part("cell"), { opacity: [0, 1, 0.4, 1] }, 900, 500);
    }
  });
})();
