// Ties a box to its side in the drawing, and equal numbers to each other, under focus as under the pointer.
(() => {
  const light = (blank) => {
    const sides = document.querySelectorAll(".edge[data-blank]");
    const size = [...sides].find((side) => side.dataset.blank === blank)?.dataset.size;
    for (const side of sides) {
      side.classList.toggle("lit", side.dataset.blank === blank);
      side.classList.toggle("kin", Boolean(blank) && size !== "?" && side.dataset.size === size);
    }
    for (const box of document.querySelectorAll("input[data-blank]")) {
      box.classList.toggle("lit", box.dataset.blank === blank && box !== document.activeElement);
    }
  };

  // On a narrow screen only the figure of the row in focus stands under the table.
  const turn = (blank) => {
    const tensor = blank.split(".")[0];
    const figures = [...document.querySelectorAll(".figures figure")];
    const shown = figures.filter((figure) => figure.dataset.tensors.split(" ").includes(tensor));
    for (const figure of figures) figure.classList.toggle("current", figure === shown.at(-1));
  };

  const blank = (target) => target?.closest?.("[data-blank]")?.dataset.blank;
  const focused = () => blank(document.activeElement);
  document.addEventListener("focusin", () => { light(focused()); if (focused()) turn(focused()); });
  document.addEventListener("focusout", () => light());
  document.addEventListener("pointerover", (event) => light(blank(event.target) ?? focused()));
  document.addEventListener("htmx:after:swap", () => { if (focused()) { light(focused()); turn(focused()); } });
})();
