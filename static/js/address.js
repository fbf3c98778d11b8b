// Keeps the address of the page in step with a form: after a swap, an element with data-address says what it is now. A
// sheet that came at /practice gets its own address, so that Back leads to it and not to the one that is next by then.
(() => {
  const sheet = document.querySelector("#work[data-keep]");
  if (sheet && location.pathname === "/practice") {
    history.replaceState(history.state, "", `${sheet.dataset.keep}&practice=1`);
  }
  document.addEventListener("htmx:after:swap", () => {
    const addressed = document.querySelector("[data-address]");
    if (addressed && location.pathname === "/handout") {
      history.replaceState(history.state, "", addressed.dataset.address);
    }
  });
})();
