// @ts-check
// The columns of the table of all nodes: how a cell reads, how a column sorts, and what goes into the CSV file.

/**
 * @typedef {object} NodeColumn
 * @property {string} key also the heading in the CSV file
 * @property {string} label
 * @property {string} help
 * @property {number} least width in rem
 * @property {number} [share] of the width that is left
 * @property {(run: Run, column: number) => number} sortBy NaN comes last, in either direction
 * @property {(run: Run, column: number) => string} show
 * @property {(run: Run, column: number) => string} raw as in the CSV file
 * @property {boolean} [words] text, and so on the left
 */

/** @param {number} value */
function rawNumber(value) {
  return Number.isNaN(value) ? "" : String(value);
}

/**
 * The width in rem that the largest of these figures needs.
 * @param {RunsReport} report
 * @param {"training" | "rows" | "decided" | "found"} key
 */
function widthOfCounts(report, key) {
  const most = report.runs.reduce((high, run) => run[key].reduce((a, b) => Math.max(a, b), high), 0);
  return 1.1 + 0.58 * asCount(most).length;
}

/**
 * @param {RunsReport} report
 * @param {"training" | "rows" | "decided" | "found"} key
 * @param {string} label
 * @param {string} help
 * @param {number} heading the width in rem that the label needs
 * @returns {NodeColumn}
 */
function countColumn(report, key, label, help, heading) {
  return { key, label, help, least: Math.max(heading, widthOfCounts(report, key)), sortBy: (run, column) => run[key][column], show: (run, column) => asCount(run[key][column]), raw: (run, column) => rawNumber(run[key][column]) };
}

/**
 * @param {"precision" | "recall" | "f1"} key
 * @param {string} label
 * @param {string} help
 * @param {number} least
 * @returns {NodeColumn}
 */
function scoreColumn(key, label, help, least) {
  const value = (/** @type {Run} */ run, /** @type {number} */ column) => (run.state[column] <= MISSED ? run[key][column] : NaN);
  return { key, label, help, least, sortBy: value, show: (run, column) => asPercent(value(run, column)), raw: (run, column) => rawNumber(value(run, column)) };
}

/** @returns {NodeColumn[]} */
function guaranteedColumns() {
  /** @type {(key: "threshold" | "size" | "recall", words: {label: string, help: string}, least: number, show?: NodeColumn["show"]) => NodeColumn} */
  const make = (key, words, least, show) => {
    const value = (/** @type {Run} */ run, /** @type {number} */ column) => guaranteedValue(run, key, column);
    return { key: `guaranteed_${key}`, ...words, least, sortBy: value, show: show ?? ((run, column) => asPercent(value(run, column))), raw: (run, column) => rawNumber(value(run, column)) };
  };
  return [make("threshold", SET_FROM, 10, guaranteedText), make("size", SET_SIZE, 5.6), make("recall", SET_RECALL, 6.6)];
}

/**
 * The place of each name in alphabetical order, with numbers by their value.
 * @param {string[]} names
 */
function alphabeticalPlaces(names) {
  const { compare } = new Intl.Collator("en", { numeric: true });
  const order = names.map((_, column) => column).sort((a, b) => compare(names[a], names[b]) || a - b);
  const places = new Float64Array(names.length);
  order.forEach((column, place) => (places[column] = place));
  return places;
}

/**
 * @param {RunsReport} report
 * @param {Choice} choice
 * @returns {NodeColumn[]}
 */
function nodeColumns(report, choice) {
  /** @type {Float64Array | null} */
  let places = null; // 45,000 comparisons of names take a while: only once somebody sorts by them
  const reasonOf = (/** @type {Run} */ run, /** @type {number} */ column) => (run.state[column] === MISSED ? report.reasons[run.reason[column]] : undefined);
  const changes = ["same", "gained", "lost"];
  const changeOf = (/** @type {number} */ column) => report.change(choice.runNumber, column);
  /** @type {(NodeColumn | false)[]} */
  const columns = [
    {
      key: "node",
      label: "Node",
      help: "name of the node",
      least: 0,
      words: true,
      sortBy: (_, column) => (places ??= alphabeticalPlaces(report.fullNames))[column],
      show: (_, column) => report.names[column],
      raw: (_, column) => report.rawNames[column],
    },
    { key: "state", label: "State", help: "found, missed, no rows, or not scored", least: 6.9, words: true, sortBy: (run, column) => run.state[column], show: (run, column) => STATE_LABELS[run.state[column]], raw: (run, column) => STATE_LABELS[run.state[column]] },
    report.runs.length > 1 && { key: "change", label: "Change", help: "against the first run", least: 6, words: true, sortBy: (_, column) => [2, 0, 1][changeOf(column)], show: (_, column) => ["", "+ gained", "− lost"][changeOf(column)], raw: (_, column) => changes[changeOf(column)] },
    scoreColumn("recall", "Recall", "found of rows", 4.6),
    scoreColumn("f1", "F1", "harmonic mean of precision and recall", 4.2),
    countColumn(report, "rows", "Rows", "rows labelled with it", 4.1),
    countColumn(report, "training", "Training", "training rows labelled with it", 5.6),
    {
      key: "reason",
      label: "Likely reason",
      help: "why it is missed",
      least: 12.4,
      share: 0.5,
      words: true,
      sortBy: (run, column) => (run.state[column] === MISSED && run.reason[column] >= 0 ? run.reason[column] : NaN),
      show: (run, column) => reasonOf(run, column)?.label ?? "",
      raw: (run, column) => reasonOf(run, column)?.label ?? "",
    },
    { key: "depth", label: "Depth", help: "steps from the root", least: 4.5, sortBy: (_, column) => report.depth[column], show: (_, column) => String(report.depth[column]), raw: (_, column) => String(report.depth[column]) },
    scoreColumn("precision", "Precision", "found of decided", 6.1),
    countColumn(report, "decided", "Decided", "rows in which the model decides for it", 5.5),
    countColumn(report, "found", "Found", "rows labelled with it in which it is decided", 4.6),
    report.runs.some((run) => run.hasThresholds) && {
      key: "threshold",
      label: "Threshold",
      help: "the probability from which it is decided",
      least: 6.4,
      // A node that is never decided has, as it were, a threshold above all others.
      sortBy: (run, column) => (run.hasThresholds && Number.isNaN(run.threshold[column]) ? Infinity : run.threshold[column]),
      show: thresholdText,
      raw: (run, column) => rawNumber(run.threshold[column]),
    },
    report.runs.some((run) => run.hasUncertainty) && { key: "uncertainty", label: "Uncertainty", help: "mean over the rows labelled with it or in which it is decided", least: 7.3, sortBy: (run, column) => run.uncertainty[column], show: (run, column) => asNumber(run.uncertainty[column]), raw: (run, column) => rawNumber(run.uncertainty[column]) },
    ...(hasGuarantees(report) ? guaranteedColumns() : []),
  ];
  return columns.filter((column) => column !== false);
}
