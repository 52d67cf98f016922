// @ts-check
// The data of the page: the hierarchy with what follows from it, and the runs, as arrays by column.

const FOUND = 0;
const MISSED = 1;
const NO_ROWS = 2;
const NOT_SCORED = 3;
const STATE_LABELS = ["found", "missed", "no rows", "not scored"];
const STATE_HELP = [
  "decided in at least one row labelled with it",
  "has rows, and is decided in none of them",
  "no row is labelled with it, so it cannot be found",
  "left out of the scores",
];

/** In the place of a reason's number, and in the place of a reason. */
const NO_REASON = -1;
const REASON_NOT_KNOWN = { label: "reason not known", help: "Records of trainings hold no probabilities; a run of `rarenode fit` has reasons." };

const SAME = 0;
const GAINED = 1;
const LOST = 2;

/** Names longer than this are cut everywhere but in the details. */
const NAME_LENGTH = 160;

/**
 * @typedef {object} Run
 * @property {string} name
 * @property {string} about
 * @property {Uint8Array} state
 * @property {Float64Array} training
 * @property {Float64Array} rows
 * @property {Float64Array} decided
 * @property {Float64Array} found
 * @property {Float64Array} precision
 * @property {Float64Array} recall
 * @property {Float64Array} f1
 * @property {Float64Array} threshold NaN: never decided
 * @property {Float64Array} uncertainty NaN: unknown
 * @property {Int8Array} reason the likeliest one's number
 * @property {Record<string, number[]>} also further reasons that apply to a missed node
 * @property {Guaranteed | null} guaranteed
 * @property {boolean} hasThresholds
 * @property {boolean} hasUncertainty
 * @property {Record<string, string>} explanations
 */

/**
 * The guaranteed sets of a model.
 * @typedef {object} Guaranteed
 * @property {number} needed held-out rows that a guarantee takes
 * @property {Float64Array} rows held-out rows with each node
 * @property {Float64Array} threshold NaN: no guarantee
 * @property {Float64Array} size share of the rows that are in the set
 * @property {Float64Array} recall NaN: no row has the node
 */

/**
 * @param {(number | null)[]} values
 */
function floats(values) {
  return Float64Array.from(values, (value) => value ?? NaN);
}

/**
 * @param {any} raw
 * @returns {Guaranteed}
 */
function readGuaranteed(raw) {
  return { needed: raw.needed, rows: floats(raw.rows), threshold: floats(raw.threshold), size: floats(raw.size), recall: floats(raw.recall) };
}

/**
 * @param {any} raw
 * @returns {Run}
 */
function readRun(raw) {
  const nodes = raw.nodes;
  const threshold = floats(nodes.threshold);
  const uncertainty = floats(nodes.uncertainty);
  return {
    name: readableText(String(raw.name)) || "(run without a name)",
    about: readableText(String(raw.about ?? "")),
    state: Uint8Array.from(nodes.state),
    training: floats(nodes.training),
    rows: floats(nodes.rows),
    decided: floats(nodes.decided),
    found: floats(nodes.found),
    precision: floats(nodes.precision),
    recall: floats(nodes.recall),
    f1: floats(nodes.f1),
    threshold,
    uncertainty,
    reason: Int8Array.from(nodes.reason),
    also: raw.also ?? {},
    guaranteed: raw.guaranteed ? readGuaranteed(raw.guaranteed) : null,
    hasThresholds: threshold.some((value) => !Number.isNaN(value)),
    hasUncertainty: uncertainty.some((value) => !Number.isNaN(value)),
    explanations: raw.explanations,
  };
}

/**
 * Children in one array, those of a node from its start to the start of the next.
 * @param {Int32Array} parent
 */
function gatherChildren(parent) {
  const start = new Int32Array(parent.length + 1);
  for (const above of parent) if (above >= 0) start[above + 1]++;
  for (let column = 0; column < parent.length; column++) start[column + 1] += start[column];
  const list = new Int32Array(start[parent.length]);
  const next = start.slice();
  /** @type {number[]} */
  const roots = [];
  parent.forEach((above, column) => {
    if (above >= 0) list[next[above]++] = column;
    else roots.push(column);
  });
  return { start, list, roots };
}

/**
 * The walk from each node to its children. A node's subtree is `order[position]` to `order[end - 1]`.
 * @param {Int32Array} parent
 * @param {{start: Int32Array, list: Int32Array, roots: number[]}} children
 */
function walk(parent, { start, list, roots }) {
  const size = parent.length;
  const order = new Int32Array(size);
  const position = new Int32Array(size);
  const end = new Int32Array(size);
  const waiting = [...roots].reverse();
  for (let place = 0; waiting.length > 0; place++) {
    const column = /** @type {number} */ (waiting.pop());
    order[place] = column;
    position[column] = place;
    for (let child = start[column + 1] - 1; child >= start[column]; child--) waiting.push(list[child]);
  }
  for (let place = size - 1; place >= 0; place--) {
    const column = order[place];
    end[column] = Math.max(end[column], place + 1);
    if (parent[column] >= 0) end[parent[column]] = Math.max(end[parent[column]], end[column]);
  }
  return { order, position, end };
}

/** The hierarchy as it is drawn, each node under one parent, and the runs over it. */
class RunsReport {
  /** @param {any} raw */
  constructor(raw) {
    /** @type {string[]} */
    this.rawNames = raw.hierarchy.names;
    this.size = this.rawNames.length;
    this.depth = Int32Array.from(raw.hierarchy.depth);
    this.parent = Int32Array.from(raw.hierarchy.parent);
    /** @type {Record<string, number[]>} */
    this.others = raw.hierarchy.others ?? {};
    /** @type {{key: string, label: string, help: string}[]} */
    this.reasons = raw.reasons;
    this.runs = /** @type {any[]} */ (raw.runs).map(readRun);
    /** What people call the nodes: the last step of a path, or the name of a term. @type {string[]} */
    const titles = (raw.hierarchy.titles ?? this.rawNames).map(readableName);
    this.fullNames = this.rawNames.map(readableName).map((name, column) => (name.endsWith(titles[column]) ? name : `${titles[column]} (${name})`));
    /** What a search looks through: not the steps above a node, or it would find all that is below. */
    this.searchNames = this.fullNames.map((name, column) => (name.endsWith(titles[column]) ? titles[column] : name));
    this.names = titles.map((title) => cut(title, NAME_LENGTH));
    this.deepest = this.depth.reduce((most, depth) => Math.max(most, depth), 0);
    const children = gatherChildren(this.parent);
    this.childStart = children.start;
    this.childList = children.list;
    this.roots = children.roots;
    const { order, position, end } = walk(this.parent, children);
    this.order = order;
    this.position = position;
    this.end = end;
    /** The nodes of each depth in the order of the walk, which is their order from top to bottom in the map. @type {number[][]} */
    this.levels = Array.from({ length: this.deepest + 1 }, () => []);
    for (const column of order) this.levels[this.depth[column]].push(column);
  }

  /**
   * A reason with its words; that of `NO_REASON` says that none is known.
   * @param {number} number
   */
  reason(number) {
    return this.reasons[number] ?? REASON_NOT_KNOWN;
  }

  /** @param {unknown} column */
  has(column) {
    return Number.isInteger(column) && /** @type {number} */ (column) >= 0 && /** @type {number} */ (column) < this.size;
  }

  /** @param {number} column */
  childCount(column) {
    return this.childStart[column + 1] - this.childStart[column];
  }

  /**
   * Its children; those of -1, the root that is not drawn, are the roots.
   * @param {number} column
   * @returns {ArrayLike<number>}
   */
  children(column) {
    return column < 0 ? this.roots : this.childList.subarray(this.childStart[column], this.childStart[column + 1]);
  }

  /**
   * All that it is drawn below, the root first.
   * @param {number} column
   */
  ancestors(column) {
    const path = [];
    for (let above = this.parent[column]; above >= 0; above = this.parent[above]) path.push(above);
    return path.reverse();
  }

  /**
   * @param {number} column
   * @param {number} above
   */
  isWithin(column, above) {
    return above < 0 || (this.position[column] >= this.position[above] && this.position[column] < this.end[above]);
  }

  /**
   * What became of a node from the first run to this one.
   * @param {number} run
   * @param {number} column
   */
  change(run, column) {
    const before = this.runs[0].state[column];
    const after = this.runs[run].state[column];
    if ((before === FOUND) === (after === FOUND)) return SAME;
    return after === FOUND ? GAINED : LOST;
  }
}
