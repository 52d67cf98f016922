// @ts-check
// What the colours of the map say.

/** @param {Fill} look */
function swatch(look) {
  const made = element("span", { class: look.hatched ? "swatch hatched" : "swatch", "aria-hidden": "true" });
  made.style.backgroundColor = look.css;
  return made;
}

/** @param {Palette} palette */
function legendParts(palette) {
  const parts = [];
  if (palette.scale) {
    const strip = element("span", { class: "scale", "aria-hidden": "true" });
    strip.style.backgroundImage = `linear-gradient(to right, ${palette.fills.slice(0, STEPS).map((step) => step.css).join(", ")})`;
    const { label, low, high } = palette.scale;
    parts.push(element("span", { class: "legend-scale" }, element("span", { class: "legend-label", text: label }), element("span", { text: low }), strip, element("span", { text: high })));
  }
  for (const key of palette.keys) {
    if (key.count === 0) continue;
    parts.push(element("span", { class: "legend-key", title: key.help }, swatch(key.fill), element("span", { text: key.label }), element("span", { class: "legend-count", text: asCount(key.count) })));
  }
  return parts;
}

/** @param {Palette} palette */
function showLegend(palette) {
  byId("legend").replaceChildren(...legendParts(palette));
}
