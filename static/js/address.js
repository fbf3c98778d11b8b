// Keeps the address of the page in step with a form: after a swap, an element with data-address says what it is now.
(() => {
  document.addEventListener("htmx:after:swap", () => {
    const addressed = document.querySelector("[data-address]");
    if (addressed && location.pathname === "/handout") {
      history.replaceState(history.state, "", addressed.dataset.address);
    }
  });
})();
