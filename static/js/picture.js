// The picture of a head as a grid: over each heat map lies a cell for each of its cells. Arrow keys go from cell to cell,
// a row's first cell reads out what the row attends to, and the product of the cell that is read stands beside the
// picture. The numbers and sentences are the server's; nothing is computed here.
(() => {
  const rowsOf = new WeakMap(); // the fragments that were fetched, by picture and query

  const arm = (picture) => {
    picture.dataset.armed = "";
    const { rows, columns, queries, sentences } = JSON.parse(picture.dataset.picture);
    const at = { row: Number(picture.dataset.row ?? 0), column: Number(picture.dataset.column ?? 0) };
    const grids = [];
    rowsOf.set(picture, new Map());

    const textOf = (texts, first, row, column) =>
      `${columns[column]}: ${texts[row][column - first] || picture.querySelector(".by-keys").dataset.masked}`;

    // A grid of labelled cells, in the places that the server has told.
    const build = (figure) => {
      const { left, top, width, height, cells: lines, first } = JSON.parse(figure.dataset.stage);
      const cells = lines.map((line) => line.split("|"));
      const grid = document.createElement("div");
      grid.className = "heat-grid";
      grid.setAttribute("role", "grid");
      grid.setAttribute("aria-label", figure.querySelector("svg").getAttribute("aria-label"));
      Object.assign(grid.style, {
        top: `${100 * top}%`,
        width: `${100 * (left + width)}%`,
        height: `${100 * height}%`,
      });
      for (const [row, label] of rows.entries()) {
        const line = document.createElement("div");
        line.setAttribute("role", "row");
        line.style.gridTemplateColumns = `${100 * left / (left + width)}% repeat(${columns.length - first}, 1fr)`;
        for (let column = -1; column < columns.length; column += 1) {
          if (column >= 0 && column < first) continue;
          const cell = document.createElement("div");
          cell.setAttribute("role", "gridcell");
          cell.setAttribute("aria-label", column < 0 ? sentences[row] : textOf(cells, first, row, column));
          cell.tabIndex = -1;
          cell.dataset.at = `${row} ${column}`;
          if (column >= 0) cell.dataset.says = `${label} · ${textOf(cells, first, row, column)}`;
          else cell.dataset.says = sentences[row];
          line.append(cell);
        }
        grid.append(line);
      }
      figure.querySelector(".heat-box").append(grid);
      grids.push(grid);
    };

    const find = (grid, row, column) =>
      grid.querySelector(`[data-at="${row} ${column}"]`) ?? grid.querySelector(`[data-at="${row} -1"]`);

    // The cell that is read: marked in every stage, and the only stop for Tab in each.
    const mark = () => {
      for (const grid of grids) {
        for (const cell of grid.querySelectorAll('[tabindex="0"], .read-cell')) {
          cell.tabIndex = -1;
          cell.classList.remove("read-cell");
        }
        grid.querySelector(".read-row")?.classList.remove("read-row");
        const cell = find(grid, at.row, at.column);
        cell.tabIndex = 0;
        cell.classList.add("read-cell");
        cell.parentElement.classList.add("read-row");
      }
    };

    const panel = () => picture.querySelector(".picture-row");
    const showProduct = () => { // of a whole row, none
      for (const product of panel()?.querySelectorAll(".product") ?? []) {
        product.hidden = Number(product.dataset.column) !== at.column;
      }
    };

    // What the server says of a row, asked for once, and only if one stays on it for `pause` ms.
    let asking = 0;
    const read = async (pause = 120) => {
      mark();
      const query = String(queries[at.row]);
      asking += 1;
      const mine = asking;
      const kept = rowsOf.get(picture);
      if (panel() && panel().dataset.query !== query) {
        await new Promise((next) => {
          setTimeout(next, pause);
        });
        if (mine !== asking) return;
        if (!kept.has(query)) {
          const answer = await fetch(picture.dataset.rows.replace("/rows/0", `/rows/${query}`));
          if (!answer.ok) return;
          kept.set(query, await answer.text());
        }
        if (mine !== asking) return;
        const { open } = panel().querySelector(".row-keys");
        panel().outerHTML = kept.get(query);
        panel().querySelector(".row-keys").open = open;
      }
      showProduct();
    };
    const toProduct = async () => {
      await read(0);
      (panel()?.querySelector(".product:not([hidden])") ?? panel()?.querySelector("summary"))?.focus();
    };

    const say = (target) => {
      const cell = target?.closest?.("[data-at]");
      const line = picture.querySelector(".drawn:has(.heat-grid :hover, .heat-grid :focus) .pointed") ??
        cell?.closest(".drawn").querySelector(".pointed");
      if (line) line.textContent = cell?.dataset.says ?? "";
    };

    picture.addEventListener("focusin", ({ target }) => {
      if (!target.dataset.at) return;
      [at.row, at.column] = target.dataset.at.split(" ").map(Number);
      say(target);
      read();
    });
    picture.addEventListener("pointerover", ({ target }) => {
      if (target.dataset?.at) say(target);
    });
    picture.addEventListener("pointerout", ({ target }) => {
      if (target.dataset?.at) say(document.activeElement);
    });

    picture.addEventListener("keydown", (event) => {
      const { target, key } = event;
      if (key === "Escape" && target.closest(".picture-row")) {
        const grid = grids.find((each) => each.offsetParent);
        if (grid) find(grid, at.row, at.column).focus();
      }
      if (!target.dataset.at) return;
      const [row, column] = target.dataset.at.split(" ").map(Number);
      const first = Number(JSON.parse(target.closest(".drawn").dataset.stage).first);
      const last = columns.length - 1;
      const whole = event.ctrlKey || event.metaKey;
      const next = {
        ArrowUp: [row - 1, column],
        ArrowDown: [row + 1, column],
        ArrowLeft: [row, column === first ? -1 : column - 1],
        ArrowRight: [row, column < 0 ? first : column + 1],
        Home: [whole ? 0 : row, -1],
        End: [whole ? rows.length - 1 : row, last],
        PageUp: [Math.max(0, row - 10), column],
        PageDown: [Math.min(rows.length - 1, row + 10), column],
      }[key];
      if (next) {
        event.preventDefault();
        const [to, along] = next;
        if (to >= 0 && to < rows.length && along >= -1 && along <= last) {
          find(target.closest(".heat-grid"), to, along).focus();
        }
      } else if (key === "Enter") {
        event.preventDefault();
        toProduct();
      }
    });

    // A sentence on a row, or a key of the row that is read, is a link without script; with it, it leads into the grid.
    picture.addEventListener("click", (event) => {
      const link = event.target.closest("a[data-query], a[data-column]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      if (link.dataset.query) {
        find(grids.find((each) => each.offsetParent), queries.indexOf(Number(link.dataset.query)), -1).focus();
      } else {
        at.column = Number(link.dataset.column);
        toProduct();
      }
    });

    // Only of the stages that have been looked at: a grid has thousands of cells.
    const buildVisible = () => {
      for (const figure of picture.querySelectorAll(".drawn:not(:has(.heat-grid))")) {
        if (figure.offsetParent) build(figure);
      }
      mark();
    };
    picture.addEventListener("change", buildVisible);
    picture.querySelector(".by-keys").hidden = false;
    buildVisible();
  };

  const armAll = () => {
    for (const picture of document.querySelectorAll(".picture:not([data-armed])")) arm(picture);
  };
  document.addEventListener("htmx:after:swap", armAll);
  armAll();
})();
