// The browser's half of docs/saving.md: what was typed and is not known to be saved, and what an answer of the server
// changes on the page. No element, no storage and no request, so that tests/web/shared/test_unsaved.py needs no browser.

/**
 * One edit of a box: the tab it was typed in, and its number there, from 1.
 * @typedef {{ tab: string, number: number }} Edit
 */
/**
 * Texts by the name of their box.
 * @typedef {Record<string, string>} Texts
 */
/**
 * What the browser stores of a tab: each unsaved edit with its text, by the name of the box.
 * @typedef {Record<string, Edit & { text: string }>} Stored
 */
/**
 * What the server says of the draft: how often it was saved, all texts, and the highest number that it has of each tab.
 * @typedef {{ version: number, answers?: Texts, tab_versions?: Record<string, number> }} Draft
 */

export class UnsavedEdits {
  /** The last edit of each box that the server has not confirmed. @type {Map<string, Edit>} */
  #edits = new Map();
  #number = 0;
  /** The version of the draft, as far as this tab was told; 0 before the first save. */
  version = 0;

  /** @param {string} tab an id that no other tab has, nor this one once it is loaded again */
  constructor(tab) {
    this.tab = tab;
  }

  get size() {
    return this.#edits.size;
  }

  /** @param {string} box */
  has(box) {
    return this.#edits.has(box);
  }

  /**
   * Note that a box was typed into.
   * @param {string} box
   */
  record(box) {
    this.#number += 1;
    this.#edits.set(box, { tab: this.tab, number: this.#number });
  }

  /** The form's field that says which of its boxes are new: "keys.rows:k3x9v2aa:17 keys.columns:k3x9v2aa:18". */
  field() {
    return [...this.#edits].map(([box, { tab, number }]) => `${box}:${tab}:${number}`).join(" ");
  }

  /**
   * What the browser should store, in case this tab is closed before the server has it all.
   * @param {Texts} texts of the boxes of the page
   * @returns {Stored}
   */
  toStore(texts) {
    const edits = [...this.#edits].filter(([box]) => box in texts);
    return Object.fromEntries(edits.map(([box, edit]) => [box, { text: texts[box], ...edit }]));
  }

  /**
   * Take over what another tab has stored, with its numbers: if the server has it after all, it is not taken twice.
   * A box that was typed into here is left as it is.
   * @param {Stored} stored
   * @param {string[]} writable the boxes of this page that can be typed into
   * @returns {Texts} what to write into boxes
   */
  adopt(stored, writable) {
    const adopted = writable.filter((box) => stored[box]?.tab && !this.has(box));
    for (const box of adopted) this.#edits.set(box, { tab: stored[box].tab, number: stored[box].number });
    return Object.fromEntries(adopted.map((box) => [box, stored[box].text]));
  }

  /**
   * Take in what the server says of the draft after a save or a press of a button.
   * @param {Draft} draft
   * @param {Texts} texts of the boxes of the page, as they are now
   * @returns {{ own: Texts, others: Texts }} what to write into boxes: `own` are texts sent from here, which the server
   *   has cleaned; `others` were typed in another tab or on another device
   */
  confirm(draft, texts) {
    const confirmed = new Set();
    for (const [box, { tab, number }] of this.#edits) {
      if (number <= (draft.tab_versions?.[tab] ?? 0)) confirmed.add(box);
    }
    for (const box of confirmed) this.#edits.delete(box);
    /** @type {Texts} */
    const own = {};
    /** @type {Texts} */
    const others = {};
    const isLate = draft.version < this.version; // a newer answer has overtaken this one
    for (const [box, text] of isLate ? [] : Object.entries(draft.answers ?? {})) {
      if (this.has(box) || !(box in texts) || texts[box] === text) continue;
      (confirmed.has(box) ? own : others)[box] = text;
    }
    this.version = Math.max(this.version, draft.version);
    return { own, others };
  }
}

// When a save that failed is sent again: after 1, 2, 4 … 30 seconds, until something is saved.
export class Retries {
  static FIRST_WAIT_MS = 1000;
  static LONGEST_WAIT_MS = 30_000;
  static MOST_BUGS = 3; // answers 500 in a row, after which the same is not sent again by itself
  #wait = Retries.FIRST_WAIT_MS;
  #bugs = 0;

  succeed() {
    this.#wait = Retries.FIRST_WAIT_MS;
    this.#bugs = 0;
  }

  /**
   * Count an answer that was none.
   * @param {number} [status] of the answer, if there was one; 500 is a bug of the server's, where 503 would pass
   */
  fail(status) {
    this.#bugs = status === 500 ? this.#bugs + 1 : 0;
  }

  get isHopeless() {
    return this.#bugs >= Retries.MOST_BUGS;
  }

  /** How many milliseconds to wait now. */
  next() {
    const wait = this.#wait;
    this.#wait = Math.min(wait * 2, Retries.LONGEST_WAIT_MS);
    return wait;
  }
}

/**
 * Whether the server took a request, failed and may take it later, or refused it: then the same is refused again.
 * @param {number} status
 * @param {boolean} isSave and no press of a button, which whoever pressed it can repeat
 * @returns {"taken" | "failed" | "refused"}
 */
export function outcomeOf(status, isSave) {
  if (status < 400) return "taken";
  return status >= 500 || status === 408 || (status === 429 && isSave) ? "failed" : "refused";
}
