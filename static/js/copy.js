// Copy buttons: hidden without script or clipboard, they put a link or a block of code on the clipboard.
(() => {
  const reveal = () => {
    for (const button of document.querySelectorAll("[data-copy-link], [data-copy]")) {
      button.hidden = !navigator.clipboard;
    }
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy-link], [data-copy]");
    if (!button) return;
    const { copyLink, copy, done } = button.dataset;
    const source = document.getElementById(copy);
    const parts = [...(source?.querySelectorAll("code") ?? [])]; // of a program in two parts, both
    const texts = (parts.length ? parts : [source]).map((part) => part?.textContent);
    await navigator.clipboard.writeText(copyLink ? new URL(copyLink, location.href).href : texts.join(""));
    const before = button.textContent;
    button.textContent = done;
    setTimeout(() => {
      button.textContent = before;
    }, 2000);
  });
  document.addEventListener("htmx:after:swap", reveal);
  reveal();
})();
