// @ts-check
// The parts of the page, put together.

/** @param {RunsReport} report */
function startPage(report) {
  const choice = new Choice(report);
  const icicle = new Icicle(report, choice);
  const outline = new Outline(report, choice, isDark);
  const details = new Details(report, choice);
  const table = new NodeTable(report, choice);
  new Search(report, choice);

  const repaint = () => {
    icicle.recolour(isDark());
    showLegend(icicle.palette);
    showReasons(report, choice.run, isDark(), (reason) => {
      table.filters.onlyReason(reason);
      byId("nodes").scrollIntoView({ behavior: motionReduced() ? "auto" : "smooth" });
    });
  };
  const resize = () => {
    const by = selectById("size-by").value;
    icicle.resizeNodes(by === "rows" ? choice.run.rows : by === "training" ? choice.run.training : null);
  };

  listenToTheme(() => choice.repaint());
  listenToPrinting(() => choice.repaint());
  listenToTabs((name) => {
    byId("icicle-controls").hidden = name !== "icicle";
    if (name === "tree") outline.show();
  });
  offerModes(report, icicle, repaint);
  offerRuns(report, choice);
  selectById("size-by").addEventListener("change", resize);
  icicle.addEventListener("zoom", () => showCrumbs(report, icicle, choice));
  choice.addEventListener("theme", repaint);
  choice.addEventListener("run", () => {
    nameRun(report, choice);
    repaint();
    if (selectById("size-by").value !== "leaves") resize();
    showChanges(report, choice);
  });
  window.addEventListener("hashchange", () => {
    const column = nodeInAddress(report);
    if (column >= 0 && column !== choice.node) choice.choose(column);
  });

  nameRun(report, choice);
  repaint();
  showCrumbs(report, icicle, choice);
  showChanges(report, choice);
  details.show();
  table.show();
  hideEmptySections(report);
  followSections();
  letFramesScroll();
  const linked = nodeInAddress(report);
  if (linked >= 0) choice.choose(linked);

  // For tests, and for the curious at the console.
  Object.assign(window, {
    rarenodeReport: {
      chosen: () => choice.node,
      zoomed: () => icicle.zoomed,
      shown: () => table.shown.length,
      get drawMilliseconds() {
        return icicle.drawMilliseconds;
      },
      ready: true,
    },
  });
}

/**
 * @param {RunsReport} report
 * @param {Icicle} icicle
 * @param {() => void} repaint
 */
function offerModes(report, icicle, repaint) {
  const select = selectById("colour-by");
  for (const [key, mode] of Object.entries(COLOUR_MODES)) if (mode.fits(report)) select.append(element("option", { value: key, text: mode.label }));
  select.addEventListener("change", () => {
    icicle.mode = select.value;
    repaint();
  });
}

/**
 * @param {RunsReport} report
 * @param {Choice} choice
 */
function offerRuns(report, choice) {
  byId("run-choice").hidden = report.runs.length < 2;
  byId("explore").classList.toggle("several", report.runs.length > 1);
  byId("explore").classList.toggle("many", report.runs.length > 2);
  const select = selectById("run");
  select.append(...report.runs.map((run, number) => element("option", { value: number, text: cut(run.name, 80), selected: number === choice.runNumber })));
  select.addEventListener("change", () => choice.showRun(Number(select.value)));
}

/**
 * @param {RunsReport} report
 * @param {Choice} choice
 */
function nameRun(report, choice) {
  for (const place of document.querySelectorAll("[data-shown-run]")) {
    /** @type {HTMLElement} */ (place).hidden = report.runs.length < 2;
    place.replaceChildren("Run shown: ", element("strong", {}, isolated(choice.run.name)));
    if (choice.run.about) place.append(" · ", isolated(cut(choice.run.about, 300)));
  }
}

document.documentElement.classList.add("scripted");
try {
  startPage(new RunsReport(JSON.parse(byId("data").textContent ?? "")));
} catch (error) {
  const place = byId("trouble");
  place.textContent = `The interactive part of this page could not start: ${error instanceof Error ? error.message : error}`;
  place.hidden = false;
  throw error;
}
