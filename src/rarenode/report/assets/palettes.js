// @ts-check
// What a colour of the map says. Scores run from pale to deep blue; a missed node breaks out of that scale in
// vermilion, so that it is seen at once, by colour-blind readers too. Where nothing can be said, there is grey.

const STEPS = 24;

/**
 * A palette gives each node one fill. Fills come in groups; where nodes are too thin to draw, a strip shows the shares of the groups.
 * @typedef {object} Palette
 * @property {Uint8Array} paint each node's fill
 * @property {Fill[]} fills
 * @property {Uint8Array} group each fill's group
 * @property {number} groups
 * @property {number} scaleGroup the group whose fills are steps of a scale, which average; -1 without a scale
 * @property {{label: string, low: string, high: string} | null} scale
 * @property {{fill: Fill, label: string, help: string, count: number}[]} keys the fills that are not on the scale
 * @property {(column: number) => string} caption what a node's colour says, in words
 */

/** @type {Record<string, {light: [Oklch, Oklch], dark: [Oklch, Oklch]}>} */
const RAMPS = {
  score: { light: [[0.92, 0.05, 200], [0.4, 0.13, 260]], dark: [[0.36, 0.075, 265], [0.84, 0.095, 215]] },
  count: { light: [[0.93, 0.025, 310], [0.4, 0.14, 295]], dark: [[0.35, 0.07, 295], [0.84, 0.085, 310]] },
  uncertainty: { light: [[0.94, 0.035, 150], [0.42, 0.085, 165]], dark: [[0.34, 0.045, 165], [0.84, 0.1, 145]] },
};

/** @type {Record<string, {light: Oklch, dark: Oklch}>} */
const SIGNALS = {
  missed: { light: [0.645, 0.195, 38], dark: [0.7, 0.185, 42] },
  found: { light: [0.8, 0.06, 225], dark: [0.5, 0.075, 235] },
  gained: { light: [0.5, 0.12, 250], dark: [0.83, 0.11, 205] },
  noRows: { light: [0.93, 0.004, 250], dark: [0.3, 0.008, 250] },
  notScored: { light: [0.88, 0.004, 250], dark: [0.36, 0.008, 250] },
  noReason: { light: [0.62, 0.012, 250], dark: [0.68, 0.012, 250] },
};

/** Apart in lightness as well as in hue. One for each reason, in the order of the reasons. @type {{light: Oklch, dark: Oklch}[]} */
const REASON_COLOURS = [
  { light: [0.38, 0.12, 335], dark: [0.58, 0.16, 335] },
  { light: [0.55, 0.11, 125], dark: [0.68, 0.13, 125] },
  { light: [0.7, 0.16, 350], dark: [0.78, 0.12, 350] },
  { light: [0.84, 0.155, 88], dark: [0.88, 0.15, 95] },
  { light: [0.74, 0.165, 58], dark: [0.77, 0.15, 62] },
  { light: [0.58, 0.2, 32], dark: [0.65, 0.2, 32] },
  { light: [0.36, 0.06, 50], dark: [0.5, 0.08, 55] },
  { light: [0.8, 0.05, 60], dark: [0.86, 0.045, 60] },
];

/** @param {boolean} dark */
function signalFills(dark) {
  const side = dark ? "dark" : "light";
  return {
    missed: fill(SIGNALS.missed[side]),
    found: fill(SIGNALS.found[side]),
    gained: fill(SIGNALS.gained[side]),
    noRows: fill(SIGNALS.noRows[side], true),
    notScored: fill(SIGNALS.notScored[side]),
  };
}

/**
 * @param {number} reason
 * @param {boolean} dark
 */
function reasonFill(reason, dark) {
  if (reason === NO_REASON) return fill(SIGNALS.noReason[dark ? "dark" : "light"]);
  return fill(REASON_COLOURS[reason][dark ? "dark" : "light"]);
}

/**
 * The fill of a score, as used outside the map.
 * @param {boolean} dark
 */
function scoreFills(dark) {
  return ramp(...RAMPS.score[dark ? "dark" : "light"], STEPS);
}

/** @param {number} share */
function stepOf(share) {
  return Math.min(STEPS - 1, Math.max(0, Math.round(share * (STEPS - 1))));
}

/**
 * A scale, and beside it the nodes that are not on it.
 * @param {object} parts
 * @param {number} parts.size
 * @param {Fill[]} parts.steps
 * @param {{low: string, high: string, label: string}} parts.scale
 * @param {(column: number) => number} parts.place 0 to 1 on the scale, or -1 - n for the n-th of the others
 * @param {{fill: Fill, label: string, help: string}[]} parts.others
 * @param {(column: number) => string} parts.caption
 * @returns {Palette}
 */
function scalePalette({ size, steps, scale, place, others, caption }) {
  const paint = new Uint8Array(size);
  const counts = others.map(() => 0);
  for (let column = 0; column < size; column++) {
    const at = place(column);
    if (at < 0) counts[-1 - at]++;
    paint[column] = at < 0 ? STEPS + (-1 - at) : stepOf(at);
  }
  // The first of the others is what the reader looks for: it comes first in a strip, then the scale, then the rest.
  const groupOfOther = others.map((_, number) => (number === 0 ? 0 : number + 1));
  return {
    paint,
    fills: [...steps, ...others.map((other) => other.fill)],
    group: Uint8Array.from([...steps.map(() => 1), ...groupOfOther]),
    groups: others.length + 1,
    scaleGroup: 1,
    scale,
    keys: others.map((other, number) => ({ ...other, count: counts[number] })),
    caption,
  };
}

/**
 * @param {number} size
 * @param {{fill: Fill, label: string, help: string}[]} kinds
 * @param {(column: number) => number} kindOf
 * @returns {Palette}
 */
function kindPalette(size, kinds, kindOf) {
  const paint = Uint8Array.from({ length: size }, (_, column) => kindOf(column));
  const counts = kinds.map(() => 0);
  for (const kind of paint) counts[kind]++;
  return {
    paint,
    fills: kinds.map((kind) => kind.fill),
    group: Uint8Array.from(kinds.keys()),
    groups: kinds.length,
    scaleGroup: -1,
    scale: null,
    keys: kinds.map((kind, number) => ({ ...kind, count: counts[number] })),
    caption: (column) => kinds[paint[column]].label,
  };
}

/**
 * @typedef {object} Context
 * @property {RunsReport} report
 * @property {number} runNumber
 * @property {boolean} dark
 */

/**
 * @param {"recall" | "f1"} measure
 * @param {string} label
 */
function scoreMode(measure, label) {
  return (/** @type {Context} */ { report, runNumber, dark }) => {
    const run = report.runs[runNumber];
    const signal = signalFills(dark);
    return scalePalette({
      size: report.size,
      steps: scoreFills(dark),
      scale: { label, low: "above 0%", high: "100%" },
      place: (column) => (run.state[column] === FOUND ? run[measure][column] : -run.state[column]),
      others: [
        { fill: signal.missed, label: "missed", help: STATE_HELP[MISSED] },
        { fill: signal.noRows, label: "no rows", help: STATE_HELP[NO_ROWS] },
        { fill: signal.notScored, label: "not scored", help: STATE_HELP[NOT_SCORED] },
      ],
      caption: (column) => (run.state[column] <= MISSED ? `${label} ${asPercent(run[measure][column])}` : STATE_LABELS[run.state[column]]),
    });
  };
}

/**
 * @param {"rows" | "training"} measure
 * @param {string} label
 * @param {string} noun
 */
function countMode(measure, label, noun) {
  return (/** @type {Context} */ { report, runNumber, dark }) => {
    const run = report.runs[runNumber];
    const values = run[measure];
    const most = values.reduce((high, value) => Math.max(high, value), 1);
    const signal = signalFills(dark);
    const none = measure === "training" ? signal.missed : signal.noRows;
    return scalePalette({
      size: report.size,
      steps: ramp(...RAMPS.count[dark ? "dark" : "light"], STEPS),
      scale: { label: `${label}, by powers`, low: "1", high: asCount(most) },
      place: (column) => (values[column] > 0 ? Math.log(values[column]) / Math.max(Math.log(most), 1e-9) : -1),
      others: [{ fill: none, label: `no ${noun}s`, help: `no ${noun} is labelled with the node` }],
      caption: (column) => counted(values[column], noun),
    });
  };
}

/** @param {Context} context */
function uncertaintyMode({ report, runNumber, dark }) {
  const { uncertainty } = report.runs[runNumber];
  const known = uncertainty.filter((value) => !Number.isNaN(value));
  const least = known.reduce((low, value) => Math.min(low, value), Infinity);
  const most = known.reduce((high, value) => Math.max(high, value), -Infinity);
  return scalePalette({
    size: report.size,
    steps: ramp(...RAMPS.uncertainty[dark ? "dark" : "light"], STEPS),
    scale: { label: "uncertainty", low: asNumber(known.length > 0 ? least : NaN), high: asNumber(known.length > 0 ? most : NaN) },
    place: (column) => (Number.isNaN(uncertainty[column]) ? -1 : (uncertainty[column] - least) / Math.max(most - least, 1e-12)),
    others: [{ fill: signalFills(dark).noRows, label: "unknown", help: "neither labelled nor decided in any row" }],
    caption: (column) => `uncertainty ${asNumber(uncertainty[column])}`,
  });
}

/** @param {Context} context */
function reasonMode({ report, runNumber, dark }) {
  const run = report.runs[runNumber];
  const signal = signalFills(dark);
  const reasons = report.reasons.map((reason, number) => ({ fill: reasonFill(number, dark), label: reason.label, help: reason.help }));
  const kinds = [
    ...reasons,
    { fill: reasonFill(NO_REASON, dark), label: `missed, ${REASON_NOT_KNOWN.label}`, help: REASON_NOT_KNOWN.help },
    { fill: signal.found, label: "found", help: STATE_HELP[FOUND] },
    { fill: signal.noRows, label: "no rows", help: STATE_HELP[NO_ROWS] },
    { fill: signal.notScored, label: "not scored", help: STATE_HELP[NOT_SCORED] },
  ];
  const afterReasons = [1, 0, 2, 3];
  return kindPalette(report.size, kinds, (column) => {
    const state = run.state[column];
    if (state === MISSED && run.reason[column] >= 0) return run.reason[column];
    return reasons.length + afterReasons[state];
  });
}

/** @param {Context} context */
function changeMode({ report, runNumber, dark }) {
  const run = report.runs[runNumber];
  const signal = signalFills(dark);
  const kinds = [
    { fill: signal.missed, label: "lost", help: "found in the first run, not in this one" },
    { fill: signal.gained, label: "gained", help: "found in this run, not in the first" },
    { fill: signal.found, label: "found as before", help: "found in both runs" },
    { fill: fill(dark ? [0.45, 0.07, 50] : [0.86, 0.06, 60]), label: "missed as before", help: "found in neither run" },
    { fill: signal.noRows, label: "no rows, or not scored", help: "nothing can be said" },
  ];
  return kindPalette(report.size, kinds, (column) => {
    const change = report.change(runNumber, column);
    if (change !== SAME) return change === LOST ? 0 : 1;
    if (run.state[column] === FOUND) return 2;
    return run.state[column] === MISSED ? 3 : 4;
  });
}

/** @type {Record<string, {label: string, make: (context: Context) => Palette, fits: (report: RunsReport) => boolean}>} */
const COLOUR_MODES = {
  recall: { label: "recall", make: scoreMode("recall", "recall"), fits: () => true },
  f1: { label: "F1", make: scoreMode("f1", "F1"), fits: () => true },
  reason: { label: "found, or why missed", make: reasonMode, fits: () => true },
  change: { label: "change against the first run", make: changeMode, fits: (report) => report.runs.length > 1 },
  rows: { label: "rows labelled with it", make: countMode("rows", "rows", "row"), fits: () => true },
  training: { label: "training rows", make: countMode("training", "training rows", "training row"), fits: () => true },
  uncertainty: { label: "uncertainty", make: uncertaintyMode, fits: (report) => report.runs.some((run) => run.hasUncertainty) },
};
