// A drawing that is wider than its place scrolls sideways there, with the arrow keys too: only then is it a Tab stop.
(() => {
  const measure = (canvas) => {
    const scrolls = canvas.scrollWidth > canvas.clientWidth && getComputedStyle(canvas).overflowX === "auto";
    const attributes = { tabindex: "0", role: "group", "aria-label": canvas.dataset.label };
    for (const [name, value] of Object.entries(attributes)) {
      if (scrolls) canvas.setAttribute(name, value);
      else canvas.removeAttribute(name);
    }
  };
  const sizes = new ResizeObserver((changes) => {
    for (const canvas of new Set(changes.map(({ target }) => target.closest(".canvas")))) if (canvas) measure(canvas);
  });
  const observe = () => {
    sizes.disconnect();
    for (const part of document.querySelectorAll(".canvas, .canvas > svg")) sizes.observe(part);
  };
  document.addEventListener("htmx:after:swap", observe);
  observe();
})();
