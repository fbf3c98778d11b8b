// The links to a product's exhibit take along what stands in the boxes when they are followed.
document.addEventListener("click", ({ target }) => {
  const link = target.closest("a[data-see]");
  if (!link) return;
  const url = new URL(link.href);
  for (const box of link.closest("form").querySelectorAll("input[data-blank]")) {
    if (box.value) url.searchParams.set(box.name, box.value);
    else url.searchParams.delete(box.name);
  }
  link.href = url;
});
