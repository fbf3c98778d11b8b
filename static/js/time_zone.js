// Where a time zone is asked for, the browser's own stands there to begin with.
for (const field of document.querySelectorAll("[data-own-zone]")) {
  field.value ||= Intl.DateTimeFormat().resolvedOptions().timeZone;
}
