// While a box has the focus, the page is laid out for typing: on a narrow screen the drawing stands above the bar at the
// bottom, and on a touch screen so do keys of its own, in place of the system's keyboard. After a
// check or a hint both are folded away, so that what is said is in sight, until a box is touched or typed into.
(() => {
  const narrow = matchMedia("(max-width: 900px)");
  const touch = matchMedia("(hover: none) and (pointer: coarse)");
  const BOX = "#work input[data-blank]:not([readonly])";
  const UNSOLVED = ":is([data-mark='wrong'], [data-mark='unreadable'], [data-mark='follows'])";
  const keys = () => document.querySelector(".keys");
  let box = null; // what is typed into, also while a button of the bar has the focus
  let byLetters = false; // the system's keyboard was asked for

  const isOpen = () => Boolean(document.querySelector(".box:not([data-mark='right']) input:not([readonly])"));

  // How much of the window the bar covers, and the time that is counted down, for the scrolling to what has the focus.
  const measure = () => {
    for (const [name, part] of [["--dock", ".dock"], ["--banner", ".closing"]]) {
      const height = document.querySelector(part)?.offsetHeight ?? 0;
      const covers = name === "--dock" ||
        (height && getComputedStyle(document.querySelector(part)).position === "sticky");
      document.documentElement.style.setProperty(name, `${covers ? height : 0}px`);
    }
  };

  let folded = false; // since a check or a hint
  let isSwapping = false; // a focus that moves now was moved by the page
  let arranged = null; // the box of the layout as it stands
  let panel = 0; // the height of the drawing above the bar in that layout
  const arrange = () => {
    const typing = folded ? null : box;
    document.body.classList.toggle("typing", Boolean(typing));
    if (keys()) keys().hidden = !(typing && touch.matches);
    measure(); // before the scrolling, which goes by it
    const height = typing ? document.querySelector(".drawing")?.offsetHeight ?? 0 : 0; // laying out takes time on a phone
    if (typing && narrow.matches && (typing !== arranged || height > panel)) {
      typing.closest("tbody").scrollIntoView({ block: "nearest" }); // what is said of it, too, as far as there is room
      typing.scrollIntoView({ block: "nearest" });
    }
    arranged = typing;
    panel = height;
  };

  // Without an input mode the system's keyboard stays away; the page's own mode brings it back.
  const prepare = () => {
    for (const each of keys() ? document.querySelectorAll(BOX) : []) {
      each.dataset.inputmode ??= each.getAttribute("inputmode");
      each.setAttribute("inputmode", touch.matches && !byLetters ? "none" : each.dataset.inputmode);
    }
  };

  // A given number takes the place of the digits before it: 128 after 4 is 128, after 4* it is 4*128.
  const type = (text, isGiven) => {
    const { selectionStart: start, selectionEnd: end, value, maxLength } = box;
    const digits = isGiven ? value.slice(0, start).match(/[\w.,]*$/)[0].length : 0;
    const from = text || start < end ? start - digits : Math.max(start - 1, 0);
    if (value.length - (end - from) + text.length > maxLength) return;
    box.setRangeText(text, from, end, "end");
    if (box.selectionEnd === box.value.length) box.scrollLeft = box.scrollWidth;
    box.dispatchEvent(
      new InputEvent("input", {
        bubbles: true,
        inputType: text ? "insertText" : "deleteContentBackward",
        data: text || null,
      }),
    );
  };

  // From a box to the next that is not known to be right, after the last one to an open question that is not answered,
  // then to what the bar offers to press; from anywhere else to the first one with a mistake, else to the first empty one.
  const goOn = () => {
    const boxes = [...document.querySelectorAll(BOX)];
    const open = boxes.slice(boxes.indexOf(box) + 1).filter((each) => each.closest("td").dataset.mark !== "right");
    const first = box ? null : open.find((each) => each.closest(UNSOLVED)) ?? open.find((each) => !each.value);
    const question = [...document.querySelectorAll(".questions textarea:not([readonly])")].find((each) => !each.value);
    const target = first ?? open[0] ?? question ?? document.querySelector(".dock .buttons > :not(.plain)");
    target?.focus({ preventScroll: narrow.matches && target.matches(BOX) });
    arrange(); // at once: it scrolls to the box
  };

  const toggleLetters = (button) => {
    byLetters = !byLetters;
    button.setAttribute("aria-pressed", byLetters);
    prepare();
    box.blur(); // a keyboard comes and goes with the focus
    box.focus();
  };

  // Pressing a key must not take the focus out of the box.
  document.addEventListener("mousedown", (event) => {
    if (event.target.closest(".keys")) event.preventDefault();
  });
  document.addEventListener("click", ({ target }) => {
    const key = target.closest(".keys button");
    if (!key || !box) return;
    if (document.activeElement !== box) box.focus({ preventScroll: true });
    if (key.matches(".next")) goOn();
    else if (key.matches(".letters")) toggleLetters(key);
    else type(key.dataset.key, key.matches(".stated *"));
  });

  // Nothing moves while a button is pressed: it would slip away under the finger, and the press be lost.
  let pressed = false;
  const arrangeSoon = () => {
    if (!pressed) setTimeout(arrange);
  };
  let pressedOn = null; // where the focus was when it was pressed
  document.addEventListener("mousedown", () => {
    pressed = true;
    pressedOn = document.activeElement;
  }, true);
  document.addEventListener("mouseup", () => {
    pressed = false;
    arrangeSoon();
  }, true);

  // What is typed takes the place of an answer that is not right; a second press puts the caret into it.
  const selectWrong = (target) => {
    if (target.matches(BOX) && target.closest(UNSOLVED) && target.selectionStart === target.selectionEnd) {
      target.select();
    }
  };
  document.addEventListener("focusin", ({ target }) => {
    selectWrong(target);
    if (target.matches(BOX)) {
      box = target;
      if (!isSwapping) folded = false;
    } else if (!target.closest(".dock")) box = null;
    arrangeSoon();
  });
  document.addEventListener("input", ({ target }) => {
    if (!folded || !target.matches(BOX)) return;
    folded = false;
    arrangeSoon();
  });
  // A tap beside all boxes leaves the focus nowhere.
  document.addEventListener("click", ({ target }) => {
    if (target.matches(BOX)) folded = false;
    if (target !== pressedOn) selectWrong(target); // the press has put the caret where it was
    if (box && document.activeElement === document.body && !target.closest(".dock")) box = null;
    arrangeSoon();
  });

  const sizes = new ResizeObserver(measure);
  let isAnswer = false; // to a button of the sheet
  const begin = () => {
    for (const part of document.querySelectorAll(".dock, .closing")) sizes.observe(part);
    prepare();
    if (isAnswer) {
      folded = isSwapping = true;
      isAnswer = false;
      setTimeout(() => {
        isSwapping = false;
      });
      if (touch.matches && !document.activeElement.matches(BOX)) box = null;
    }
    if (box && !(box.isConnected && isOpen())) box = null;
    arrange();
  };
  document.addEventListener("htmx:before:swap", ({ detail: { ctx } }) => {
    isAnswer = Boolean(ctx?.sourceElement?.matches("#work button[formaction]"));
  });
  document.addEventListener("htmx:after:swap", begin);
  touch.addEventListener("change", begin);
  begin();
})();
