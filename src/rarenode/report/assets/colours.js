// @ts-check
// Colours that step evenly for the eye: mixed in OKLab, where equal distances look equal.

/** @typedef {[lightness: number, chroma: number, hue: number]} Oklch */
/** @typedef {[number, number, number]} Triple */

/**
 * @param {Oklch} colour
 * @returns {Triple} lightness, and the two axes of hue
 */
function oklab([lightness, chroma, hue]) {
  const angle = (hue * Math.PI) / 180;
  return [lightness, chroma * Math.cos(angle), chroma * Math.sin(angle)];
}

/**
 * Light of red, green and blue, each 0 to 1, from OKLab. The matrices are those of its definition.
 * @param {Triple} colour
 * @returns {Triple}
 */
function linearLight([lightness, a, b]) {
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const light = [
    4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * medium + 1.707614701 * short,
  ];
  return /** @type {Triple} */ (light.map((value) => Math.min(1, Math.max(0, value))));
}

/** @param {number} light */
function encoded(light) {
  const value = light <= 0.0031308 ? 12.92 * light : 1.055 * light ** (1 / 2.4) - 0.055;
  return Math.round(255 * value);
}

/**
 * @typedef {object} Fill
 * @property {string} css
 * @property {string} ink the colour of a text on it
 * @property {boolean} hatched
 */

/**
 * @param {Triple} lab
 * @param {boolean} [hatched]
 * @returns {Fill}
 */
function fillOfLab(lab, hatched = false) {
  const light = linearLight(lab);
  const luminance = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2];
  // The better of white and black has a contrast of at least 4.58 on any colour, as WCAG measures it; a softer black has not.
  const white = 1.05 / (luminance + 0.05);
  const black = (luminance + 0.05) / 0.05;
  return { css: `rgb(${light.map(encoded).join(" ")})`, ink: white > black ? "#fff" : "#000", hatched };
}

/**
 * @param {Oklch} colour
 * @param {boolean} [hatched]
 */
function fill(colour, hatched = false) {
  return fillOfLab(oklab(colour), hatched);
}

/**
 * Even steps between two colours.
 * @param {Oklch} low
 * @param {Oklch} high
 * @param {number} steps
 * @returns {Fill[]}
 */
function ramp(low, high, steps) {
  const from = oklab(low);
  const to = oklab(high);
  return Array.from({ length: steps }, (_, step) => {
    const share = step / (steps - 1);
    return fillOfLab(/** @type {Triple} */ (from.map((value, axis) => value + share * (to[axis] - value))));
  });
}
