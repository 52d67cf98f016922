// @ts-check
// Where the nodes of the map lie. Columns are depths, from left to right, so that names stay horizontal; within its
// parent's height a node takes its share. Heights are laid out once, from 0 to 1; zooming only moves a window over them.

/** A node without rows still has to be seen when rows give the size. */
const LEAST_WEIGHT = 0.25;
/** A cell of this height holds a line of text. */
const LINE = 14;

class IcicleLayout {
  /**
   * @param {RunsReport} report
   * @param {Float64Array | null} weights what a leaf counts; null: each 1
   */
  constructor(report, weights) {
    this.report = report;
    const { size, order, parent } = report;
    const share = new Float64Array(size);
    for (let place = size - 1; place >= 0; place--) {
      const column = order[place];
      if (report.childCount(column) === 0) share[column] = weights ? Math.max(weights[column], LEAST_WEIGHT) : 1;
      if (parent[column] >= 0) share[parent[column]] += share[column];
    }
    const total = report.roots.reduce((sum, root) => sum + share[root], 0);
    this.top = new Float64Array(size);
    this.bottom = new Float64Array(size);
    const filled = new Float64Array(size); // where the next child begins
    let rootsFilled = 0;
    for (const column of order) {
      const above = parent[column];
      const start = above >= 0 ? filled[above] : rootsFilled;
      this.top[column] = start;
      this.bottom[column] = start + share[column] / total;
      filled[column] = start;
      if (above >= 0) filled[above] = this.bottom[column];
      else rootsFilled = this.bottom[column];
    }
  }

  /**
   * The part of the map that a node fills, with the left edge of each depth's column.
   * @param {number} zoomed -1: all
   * @param {number} width
   * @param {number} height
   */
  view(zoomed, width, height) {
    const from = zoomed < 0 ? 0 : this.top[zoomed];
    const to = zoomed < 0 ? 1 : this.bottom[zoomed];
    return { from, to, edges: this.#edges(zoomed, (height / (to - from)), width) };
  }

  /**
   * Columns are the wider the more of them can be read: deep levels of thin nodes have no names to show, but stay in sight.
   * @param {number} zoomed
   * @param {number} scale pixels for a height of 1
   * @param {number} width
   */
  #edges(zoomed, scale, width) {
    const { report } = this;
    const base = zoomed < 0 ? 0 : report.depth[zoomed];
    const first = zoomed < 0 ? 0 : report.position[zoomed];
    const last = zoomed < 0 ? report.size : report.end[zoomed];
    const readable = new Float64Array(report.deepest + 1);
    const present = new Uint8Array(report.deepest + 1);
    let all = 0;
    for (let place = first; place < last; place++) {
      const column = report.order[place];
      const height = (this.bottom[column] - this.top[column]) * scale;
      const depth = report.depth[column];
      present[depth] = 1;
      if (depth === base) all += height;
      if (height >= LINE) readable[depth] += height;
    }
    const wanted = readable.map((height, depth) => (present[depth] ? 0.3 + height / Math.max(all, 1) : 0));
    // The first column of a zoomed map is one node, the way out: it needs no more than its name.
    if (base < report.deepest && wanted[base + 1] > 0 && (zoomed >= 0 || report.roots.length === 1)) wanted[base] = Math.min(wanted[base], 0.7);
    const total = wanted.reduce((sum, value) => sum + value, 0);
    const edges = new Float64Array(report.deepest + 2);
    for (let depth = 0; depth <= report.deepest; depth++) edges[depth + 1] = edges[depth] + (wanted[depth] / total) * width;
    return edges;
  }

  /**
   * The node of this depth at a height, or -1.
   * @param {number} depth
   * @param {number} height 0 to 1
   */
  at(depth, height) {
    const level = this.report.levels[depth];
    if (!level) return -1;
    let low = 0;
    let high = level.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.bottom[level[middle]] <= height) low = middle + 1;
      else high = middle;
    }
    return low < level.length && this.top[level[low]] <= height ? level[low] : -1;
  }
}
