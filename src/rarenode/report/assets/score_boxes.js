// @ts-check
// Small boxes with the F1 of each run, as in a node-level figure of a paper: two runs side by side, four as two rows
// of two (say, unweighted and weighted across, untrained and trained down), others in one row.

/** @param {number} runs */
function boxColumns(runs) {
  return runs === 4 ? 2 : runs;
}

/**
 * @param {RunsReport} report
 * @param {number} column
 * @param {Fill[]} fills
 */
function scoreBoxes(report, column, fills) {
  const grid = element("span", { class: `boxes boxes-${boxColumns(report.runs.length)}` });
  report.runs.forEach((run, number) => {
    const state = run.state[column];
    const known = state <= MISSED;
    const box = element("span", {
      class: known ? (state === MISSED ? "box box-missed" : "box") : "box box-none",
      text: known ? (100 * run.f1[column]).toFixed(run.f1[column] === 1 || run.f1[column] === 0 ? 0 : 1) : NOTHING,
      title: `${run.name}: ${known ? `F1 ${asPercent(run.f1[column])}` : STATE_LABELS[state]}`,
    });
    if (state === FOUND) {
      const look = fills[stepOf(run.f1[column])];
      box.style.backgroundColor = look.css;
      box.style.color = look.ink;
    }
    box.dataset.run = String(number);
    grid.append(box);
  });
  return grid;
}

/** Which box is which run. @param {RunsReport} report */
function boxKey(report) {
  const grid = element("span", { class: `boxes boxes-key boxes-${boxColumns(report.runs.length)}` });
  grid.append(...report.runs.map((run) => element("span", { class: "box", title: run.name }, isolated(run.name))));
  return element("div", { class: "box-key" }, element("span", { class: "box-key-label", text: "F1 in percent, for each node:" }), grid);
}

/**
 * A sign for a node that the shown run gained or lost against the first.
 * @param {number} change
 */
function changeMark(change) {
  const gained = change === GAINED;
  return element("span", { class: `change ${gained ? "change-gained" : "change-lost"}`, text: gained ? "+" : "−", title: gained ? "gained" : "lost" });
}
