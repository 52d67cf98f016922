// @ts-check
// What the reader has chosen: a node, and a run. The parts of the page listen, and know nothing of each other.

/** Sends "node", "run" and "theme" when one of them has changed. */
class Choice extends EventTarget {
  /** @param {RunsReport} report */
  constructor(report) {
    super();
    this.report = report;
    this.node = -1;
    // The first run is what the others are compared with, so the last one has more to tell.
    this.runNumber = report.runs.length - 1;
  }

  get run() {
    return this.report.runs[this.runNumber];
  }

  /**
   * @param {number} column -1: none
   */
  choose(column) {
    if (column !== -1 && !this.report.has(column)) return;
    this.node = column;
    this.dispatchEvent(new Event("node"));
    keepInAddress(column);
  }

  /** @param {number} number */
  showRun(number) {
    this.runNumber = number;
    this.dispatchEvent(new Event("run"));
  }

  /** The colours of the page have changed. */
  repaint() {
    this.dispatchEvent(new Event("theme"));
  }
}

/**
 * The address of the page leads back to the node. Some browsers refuse that for a file from disk; nothing is lost then.
 * @param {number} column
 */
function keepInAddress(column) {
  const wanted = column < 0 ? "" : `#node=${column}`;
  const present = window.location.hash;
  if (wanted === present || (wanted === "" && !present.startsWith("#node="))) return;
  try {
    window.history.replaceState(null, "", wanted || window.location.pathname + window.location.search);
  } catch {
    // refused
  }
}

/**
 * The node in the address, or -1. An address comes from anywhere: only a column of this hierarchy counts.
 * @param {RunsReport} report
 */
function nodeInAddress(report) {
  const match = /^#node=(\d{1,9})$/.exec(window.location.hash);
  const column = match ? Number(match[1]) : -1;
  return report.has(column) ? column : -1;
}
