// A page that renews itself, such as the live view, rests while nobody can see it. It says so when it could not be brought
// up to date, so that nobody takes old numbers for new ones.
(() => {
  const floor = document.querySelector("[data-live-view]");
  if (!floor) return;
  const sign = document.getElementById("stale");
  const show = (ctx, stale) => {
    if (ctx?.sourceElement === floor) sign.hidden = !stale;
  };
  document.addEventListener("htmx:before:request", (event) => {
    const { ctx } = event.detail;
    if (document.hidden && ctx.sourceElement === floor && ctx.sourceEvent?.type === "every") event.preventDefault();
  });
  document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => show(ctx, ctx.response.status >= 400));
  document.addEventListener("htmx:error", ({ detail: { ctx } }) => show(ctx, true));
})();
