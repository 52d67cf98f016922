// @ts-check
// Numbers and names as a reader sees them.

const COUNTS = new Intl.NumberFormat("en");
const NOTHING = "–";

/** @param {number} number */
function asCount(number) {
  return COUNTS.format(number);
}

/**
 * A fraction in percent; NaN is a dash.
 * @param {number} fraction
 */
function asPercent(fraction) {
  if (Number.isNaN(fraction)) return NOTHING;
  if (fraction === 0) return "0%";
  return fraction === 1 ? "100%" : `${(100 * fraction).toFixed(1)}%`;
}

/**
 * A number with three digits that count; NaN is a dash.
 * @param {number} number
 */
function asNumber(number) {
  if (Number.isNaN(number)) return NOTHING;
  if (number !== 0 && Math.abs(number) < 1e-4) return number.toExponential(1);
  return String(Number(number.toPrecision(3)));
}

/**
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
function counted(count, one, many = `${one}s`) {
  return `${asCount(count)} ${count === 1 ? one : many}`;
}

/**
 * The first characters, never half of one that takes two code units.
 * @param {string} text
 * @param {number} length
 */
function cut(text, length) {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  const splits = last >= 0xd800 && last <= 0xdbff;
  return `${text.slice(0, splits ? length - 1 : length)}…`;
}

const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}]/gu;
const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const HALVES = /\p{Surrogate}/gu;
const INVISIBLE = /^[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]*$/u;

/**
 * Text that shows what it is: control characters are blanks, directions cannot be overridden, half characters are
 * marked as such; empty if nothing of it is visible.
 * @param {string} text
 */
function readableText(text) {
  const readable = text.replace(HALVES, "\ufffd").replace(CONTROLS, " ").replace(DIRECTIONS, "");
  return INVISIBLE.test(readable) ? "" : readable;
}

/**
 * @param {string} name
 * @param {number} column
 */
function readableName(name, column) {
  return readableText(name) || `(blank name, node ${column})`;
}
