// Ties a box to its side in the drawing, a row to its matrix and equal numbers to each other, under focus as under the
// pointer or a finger. In the one
// drawing of a head the product of the row in focus is in colour; where the drawing has too little room, it shows that
// product alone.
(() => {
  const SMALLEST = 0.72; // of its own size, at which the whole drawing can still be read
  const NUMBERS = ".edge[data-size], .ruler [data-size], .rows input[data-blank]";
  // A number as drawings write it, 131,072; "" for what isn't one.
  const sizeOf = (part) => {
    const text = part.dataset.size ?? part.value.trim();
    return /^[\d,]+$/.test(text) ? text.replaceAll(",", "") : part.dataset.size === "?" ? "" : text;
  };
  // One side, or without it all sides of a matrix; with it everything that has the same number.
  const light = (blank, tensor = blank?.split(".")[0], size = "") => {
    const isMeant = ({ dataset }) => blank ? dataset.blank === blank : dataset.blank?.split(".")[0] === tensor;
    const parts = [...document.querySelectorAll(NUMBERS)];
    const sizes = new Set(size ? [size] : parts.filter((part) => blank && isMeant(part)).map(sizeOf));
    sizes.delete("");
    for (const part of parts) {
      part.classList.toggle("kin", sizes.has(sizeOf(part)));
      if (part.matches("input")) part.classList.toggle("lit", isMeant(part) && part !== document.activeElement);
      else if (part.matches(".edge")) part.classList.toggle("lit", isMeant(part));
    }
    for (const matrix of document.querySelectorAll(".matrix[data-tensor]")) {
      matrix.classList.toggle("lit", matrix.dataset.tensor === tensor);
    }
  };

  // Of the sentences on what doesn't fit, a narrow screen has room for one: on the box in focus, else on its row.
  const caption = (blank, tensor) => {
    const sentences = [...document.querySelectorAll(".figures .mismatch[data-about]")];
    const about = (each) => each.dataset.about.split(" ");
    const current = sentences.find((each) => about(each).includes(blank)) ??
      sentences.find((each) => about(each).some((name) => name.split(".")[0] === tensor));
    for (const each of sentences) each.classList.toggle("current", each === current);
  };

  // On a narrow screen only the figure of the row in focus stands under the table: the last that has it, or of steps
  // that are looked at one by one the one that makes it, unless another one shows that it does not fit.
  const turn = (blank) => {
    const tensor = blank.split(".")[0];
    caption(blank, tensor);
    const figures = [...document.querySelectorAll(".figures figure")];
    const shown = figures.filter((figure) => figure.dataset.tensors.split(" ").includes(tensor));
    const steps = shown.filter((figure) => figure.querySelector("svg.flow"));
    const current = steps.find((figure) => figure.querySelector(".mismatched")) ?? steps[0] ?? shown.at(-1);
    for (const figure of figures) figure.classList.toggle("current", figure === current);
    const svg = current?.querySelector("svg:not(.flow)");
    if (svg?.getClientRects().length) makeRoom(svg, svg.viewBox.baseVal);
  };

  // The height at which what is shown of a drawing has type of its own size, for the panel on a narrow screen.
  const makeRoom = (svg, { width, height }) => {
    const scaled = height * Math.min(1, svg.parentElement.clientWidth / width);
    document.documentElement.style.setProperty("--drawn", `${Math.round(scaled)}px`);
  };

  const flows = () => [...document.querySelectorAll(".figures svg.flow")];
  const productsOf = (part) => part.dataset.product.split(" ");
  const isAllRight = () => Boolean(document.querySelector("#work[data-all-right]")); // then the whole drawing is shown
  let product; // that the drawing was last turned to

  // The product that a row is about: its own matrix's, or of a parameter the one it is multiplied in.
  const productOf = (svg, blank) => {
    const frames = JSON.parse(svg.dataset.frames);
    const tensor = blank?.split(".")[0];
    const operand = svg.querySelector(`.matrix[data-tensor="${tensor}"]`);
    const broken = svg.querySelector(".mismatched")?.dataset.product?.split(" ")[0];
    const takesPart = [...svg.querySelectorAll(`.matrix[data-tensor="${tensor}"]`)].some((box) =>
      productsOf(box).includes(broken)
    );
    return [takesPart && broken, tensor, operand?.dataset.product].find((key) => key in frames);
  };

  // Colours the parts of a product; without one, those that the server has chosen.
  const work = (svg) => {
    for (const part of svg.querySelectorAll("[data-product]")) {
      part.dataset.on ??= part.classList.contains("on") ? "on" : "";
      part.classList.toggle("on", product ? productsOf(part).includes(product) : part.dataset.on === "on");
    }
  };

  // Hides what stands before the frame's own label of the lane: another operand, which stands above or below there too.
  const clear = (svg) => {
    const parts = [...svg.querySelectorAll("[data-product]:not(.away)")];
    const label = parts.find((part) => part.classList.contains("here"))?.getBBox();
    const lane = svg.querySelector(".lane")?.getBBox();
    if (!label || !lane) return;
    for (const part of parts.filter((part) => !part.classList.contains("here"))) {
      const { x, y, width, height } = part.getBBox();
      const before = lane.width > lane.height
        ? x + width / 2 < label.x + label.width
        : y + height / 2 < label.y + label.height;
      part.classList.toggle("away", before);
    }
  };

  // Shows the frame of one product where the whole drawing would be too small, else all of it.
  const moving = new WeakMap();
  const frame = (svg) => {
    svg.dataset.whole ??= svg.getAttribute("viewBox");
    const frames = JSON.parse(svg.dataset.frames);
    const whole = svg.dataset.whole.split(" ").map(Number);
    const working = product ?? (isAllRight() ? "" : null) ??
      (svg.querySelector(".matrix.on.open") ?? svg.querySelector(".matrix.on"))?.dataset.product.split(" ")[0];
    const key = flows().length > 1 && !isAllRight() && !(working in frames) ? Object.keys(frames)[0] : working;
    const small = svg.parentElement.clientWidth < whole[2] * SMALLEST && key in frames;
    const target = small ? frames[key] : whole;
    svg.classList.toggle("framed", small);
    if (svg.getClientRects().length) makeRoom(svg, { width: target[2], height: target[3] });
    for (const part of svg.querySelectorAll("[data-product]")) {
      const near = productsOf(part).some((each) => String(frames[each]) === String(frames[key]));
      // An arc from a matrix outside the frame would only be cut off at its edge.
      const { x, y } = part.getBBox();
      const isCut = part.classList.contains("arc") && (x < target[0] || y < target[1]);
      part.classList.toggle("away", small && (!near || isCut));
    }
    for (const lane of svg.querySelectorAll(".lane")) {
      const { x, width } = lane.getBBox();
      lane.classList.toggle("away", small && x + width < target[0]);
    }
    if (small) clear(svg);
    const from = (svg.dataset.seen ?? target.join(" ")).split(" ").map(Number);
    svg.dataset.seen = target.join(" ");
    cancelAnimationFrame(moving.get(svg));
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches || from.join() === target.join();
    const start = performance.now();
    const step = (now) => {
      const done = still ? 1 : Math.min(1, Math.max(0, now - start) / 220); // a frame may have begun before the start
      const eased = 1 - (1 - done) ** 3;
      svg.setAttribute("viewBox", target.map((to, i) => from[i] + (to - from[i]) * eased).join(" "));
      if (done < 1) moving.set(svg, requestAnimationFrame(step));
    };
    step(start);
  };

  const show = (blank) => {
    const isBroken = (svg) => Boolean(svg.querySelector(".mismatched"));
    const own = blank &&
      flows().sort((a, b) => Number(isBroken(b)) - Number(isBroken(a))).map((svg) => productOf(svg, blank)).find(
        Boolean,
      );
    product = blank ? own ?? product : isAllRight() ? undefined : product;
    const first = flows().length > 1 && !isAllRight() && !document.querySelector(".figures .current");
    if (first) turn(document.querySelector(".flow .matrix.on")?.dataset.tensor ?? "");
    for (const svg of flows()) {
      work(svg);
      frame(svg);
    }
  };

  const blank = (target) => target?.closest?.("[data-blank]")?.dataset.blank;
  const focused = () => blank(document.activeElement);
  document.addEventListener("focusin", () => {
    light(focused());
    if (focused()) {
      turn(focused());
      show(focused());
    }
  });
  document.addEventListener("focusout", () => light());
  document.addEventListener("pointerover", (event) => {
    const over = blank(event.target);
    const given = event.target.closest?.(".ruler [data-size]");
    if (given) {
      light(undefined, undefined, sizeOf(given));
      return;
    }
    const row = event.target.closest?.(".rows tbody")?.querySelector("input[data-blank]")?.dataset.blank;
    const matrix = event.target.closest?.(".matrix[data-tensor]")?.dataset.tensor ?? row?.split(".")[0];
    light(over ?? (matrix ? undefined : focused()), over ? undefined : matrix);
    const before = product;
    for (const svg of flows().filter((each) => !each.classList.contains("framed"))) {
      if (over && event.target.closest(".rows")) product = productOf(svg, over) ?? product;
      work(svg);
    }
    product = before;
  });
  document.addEventListener("htmx:after:swap", () => {
    light(focused());
    if (focused()) turn(focused());
    show(isAllRight() ? undefined : focused());
  });
  addEventListener("resize", () => show());
  addEventListener("beforeprint", () => flows().forEach((svg) => svg.setAttribute("viewBox", svg.dataset.whole)));
  addEventListener("afterprint", () => show());
  show();
})();
