// A term of the formula, its piece of the bar and its row of the table light up together, under the pointer or in focus.
{
  const section = document.querySelector("main");
  const pieces = [...section.querySelectorAll("[data-piece]")];
  const light = (event) => {
    const key = event.target.closest("[data-piece]")?.dataset.piece;
    for (const piece of pieces) piece.classList.toggle("lit", piece.dataset.piece === key);
  };
  for (const piece of section.querySelectorAll(".term, .whole-model > g")) piece.tabIndex = 0;
  for (const kind of ["pointerover", "focusin"]) section.addEventListener(kind, light);
  for (const kind of ["pointerleave", "focusout"]) section.addEventListener(kind, () => light({ target: section }));
}
