// On the first page of a visit, text is painted with our upright alone, and the other typefaces are fetched after that:
// nobody waits for them. Later pages have them from the start (data-arriving, page.css).
(() => {
  const root = document.documentElement;
  if (!("arriving" in root.dataset)) return;
  const FACES = ["1em Libertinus Serif", "italic 1em Libertinus Serif", "1em Figtree"];
  new PerformanceObserver(async (_, painted) => {
    painted.disconnect();
    await Promise.allSettled(FACES.map((face) => document.fonts.load(face)));
    delete root.dataset.arriving;
  }).observe({ type: "paint", buffered: true });
})();
