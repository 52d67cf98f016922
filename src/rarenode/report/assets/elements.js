// @ts-check
"use strict";
// Making elements. Text from the data reaches the page through `textContent` alone, so no name can become markup.

/**
 * @param {string} tag
 * @param {Record<string, string | number | boolean | null | undefined>} [attributes] `class`, `text`, and attributes; false, null and undefined are left out
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "text") made.textContent = String(value);
    else if (name === "class") made.className = String(value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children);
  return made;
}

/**
 * A name of the data, isolated so that its writing direction cannot reorder the words around it.
 * @param {string} text
 */
function isolated(text) {
  return element("bdi", { text });
}

/**
 * Text in which what stands between backticks is code.
 * @param {string} text
 */
function withCode(text) {
  return text.split("`").map((part, number) => (number % 2 === 1 ? element("code", { text: part }) : part));
}

/**
 * The element with this id; the page's own template promises it.
 * @param {string} id
 * @returns {HTMLElement}
 */
function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element '${id}'`);
  return found;
}

/**
 * @param {string} id
 * @returns {HTMLSelectElement}
 */
function selectById(id) {
  return /** @type {HTMLSelectElement} */ (byId(id));
}

/**
 * @param {string} id
 * @returns {HTMLInputElement}
 */
function inputById(id) {
  return /** @type {HTMLInputElement} */ (byId(id));
}

/**
 * A function that runs once, when the calls have paused for so long.
 * @param {() => void} work
 * @param {number} milliseconds
 */
function afterPause(work, milliseconds) {
  let timer = 0;
  return () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(work, milliseconds);
  };
}

/**
 * A function that runs at most once for each frame.
 * @param {() => void} work
 */
function oncePerFrame(work) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    window.requestAnimationFrame(() => {
      waiting = false;
      work();
    });
  };
}

/** Whether the reader prefers less motion. */
function motionReduced() {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}
