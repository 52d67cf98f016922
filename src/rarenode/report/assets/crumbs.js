// @ts-check
// The way from the roots to the node that fills the map, as buttons.

/**
 * @param {RunsReport} report
 * @param {Icicle} icicle
 * @param {Choice} choice
 */
function showCrumbs(report, icicle, choice) {
  const { zoomed } = icicle;
  const all = element("button", { type: "button", class: "crumb", text: "All nodes", disabled: zoomed < 0 });
  all.addEventListener("click", () => icicle.zoomTo(-1));
  const parts = [all];
  const path = zoomed < 0 ? [] : [...report.ancestors(zoomed), zoomed];
  for (const column of path) {
    const last = column === zoomed;
    const crumb = element("button", { type: "button", class: "crumb", title: report.fullNames[column], "aria-current": last && "location", disabled: last }, isolated(report.names[column]));
    crumb.addEventListener("click", () => choice.choose(column));
    parts.push(crumb);
  }
  const place = byId("crumbs");
  place.replaceChildren(...parts);
  place.scrollLeft = place.scrollWidth;
}
