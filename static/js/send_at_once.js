// A form that only carries something to another site needs no click, but has a button for browsers without scripts.
document.querySelector("[data-send-at-once]")?.requestSubmit();
