// Ties a box to its side in the drawing, and equal numbers to each other, under focus as under the pointer.
(() => {
  const light = (place) => {
    const sides = document.querySelectorAll(".edge[data-place]");
    const size = [...sides].find((side) => side.dataset.place === place)?.dataset.size;
    for (const side of sides) {
      side.classList.toggle("lit", side.dataset.place === place);
      side.classList.toggle("kin", Boolean(place) && size !== "?" && side.dataset.size === size);
    }
    for (const box of document.querySelectorAll("input[data-place]")) {
      box.classList.toggle("lit", box.dataset.place === place && box !== document.activeElement);
    }
  };

  // On a narrow screen only the figure of the row in focus stands under the table.
  const turn = (place) => {
    const tensor = place.split(".")[0];
    const figures = [...document.querySelectorAll(".figures figure")];
    const shown = figures.filter((figure) => figure.dataset.tensors.split(" ").includes(tensor));
    for (const figure of figures) figure.classList.toggle("current", figure === shown.at(-1));
  };

  const place = (target) => target?.closest?.("[data-place]")?.dataset.place;
  const focused = () => place(document.activeElement);
  document.addEventListener("focusin", () => { light(focused()); if (focused()) turn(focused()); });
  document.addEventListener("focusout", () => light());
  document.addEventListener("pointerover", (event) => light(place(event.target) ?? focused()));
  document.addEventListener("htmx:after:swap", () => { if (focused()) { light(focused()); turn(focused()); } });
})();
