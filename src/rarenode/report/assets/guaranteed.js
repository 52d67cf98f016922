// @ts-check
// Guaranteed sets: from which probability a node is in its set, how large the set is, and what it finds; or why there is none.

const SET_FROM = { label: "Guaranteed from", help: "the probability from which a row is in its guaranteed set, whatever its ancestors; without a guarantee, its held-out rows and how many it takes" };
const SET_SIZE = { label: "Set size", help: "share of the rows here that are in its guaranteed set" };
const SET_RECALL = { label: "Set recall", help: "share of the rows labelled with it here that are in its guaranteed set" };

/** @param {RunsReport} report */
function hasGuarantees(report) {
  return report.runs.some((run) => run.guaranteed);
}

/**
 * @param {Run} run
 * @param {"threshold" | "size" | "recall"} key
 * @param {number} column
 */
function guaranteedValue(run, key, column) {
  return run.guaranteed ? run.guaranteed[key][column] : NaN;
}

/**
 * @param {Run} run
 * @param {number} column
 */
function guaranteedText(run, column) {
  if (!run.guaranteed) return NOTHING;
  const threshold = run.guaranteed.threshold[column];
  return Number.isNaN(threshold) ? rowsOfNeeded(run.guaranteed, column) : asNumber(threshold);
}

/**
 * @param {Guaranteed} sets
 * @param {number} column
 */
function rowsOfNeeded(sets, column) {
  const rows = sets.rows[column];
  return rows < sets.needed ? `${asCount(rows)} of ${counted(sets.needed, "row")}` : "no";
}

/**
 * Why a node has no guarantee; empty if it has one.
 * @param {Run} run
 * @param {number} column
 */
function whyNotGuaranteed(run, column) {
  if (!run.guaranteed || !Number.isNaN(run.guaranteed.threshold[column])) return "";
  const few = run.guaranteed.rows[column] < run.guaranteed.needed;
  const why = few ? rowsOfNeeded(run.guaranteed, column) : "its probability is 0 in held-out rows that have it";
  return `Cannot be guaranteed: ${why}.`;
}
