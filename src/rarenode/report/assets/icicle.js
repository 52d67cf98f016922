// @ts-check
// The map that one can walk through: zooming, pointing, keys. Rings around nodes are elements above the canvas, so that
// pointing redraws nothing.

const ZOOM_MILLISECONDS = 320;
/** A node lower than this cannot be pointed at, let alone seen; its ancestor answers for it. */
const LEAST_TARGET = 4;

/** Sends "zoom" when another node fills the map. */
class Icicle extends EventTarget {
  /**
   * @param {RunsReport} report
   * @param {Choice} choice
   */
  constructor(report, choice) {
    super();
    this.report = report;
    this.choice = choice;
    this.frame = byId("icicle");
    this.canvas = /** @type {HTMLCanvasElement} */ (byId("icicle-canvas"));
    this.drawing = new IcicleDrawing(this.canvas, report);
    this.layout = new IcicleLayout(report, null);
    this.zoomed = -1;
    this.focused = -1;
    this.hovered = -1;
    this.mode = "recall";
    this.drawMilliseconds = 0;
    this.animation = 0;
    this.dark = false;
    /** @type {Palette} */
    this.palette = COLOUR_MODES.recall.make({ report, runNumber: choice.runNumber, dark: false });
    /** @type {View} */
    this.view = this.layout.view(-1, 1, 1);
    this.#listen();
  }

  #listen() {
    const { canvas } = this;
    new ResizeObserver(oncePerFrame(() => this.#fit())).observe(this.frame);
    canvas.addEventListener("pointermove", (event) => this.#point(event));
    canvas.addEventListener("pointerleave", () => this.#unpoint());
    canvas.addEventListener("click", (event) => this.#click(event));
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("focus", () => {
      if (canvas.matches(":focus-visible")) this.#focus(this.focused >= 0 ? this.focused : Math.max(this.choice.node, this.zoomed, 0));
    });
    canvas.addEventListener("blur", () => this.#placeRings());
    this.choice.addEventListener("node", () => {
      if (this.choice.node >= 0) this.zoomTo(this.#fillingFor(this.choice.node));
      this.focused = this.choice.node;
      this.#placeRings();
    });
  }

  /**
   * Takes the colours anew: another run, another measure, another theme.
   * @param {boolean} dark
   */
  recolour(dark) {
    this.dark = dark;
    this.palette = COLOUR_MODES[this.mode].make({ report: this.report, runNumber: this.choice.runNumber, dark });
    this.drawing.prepareHatch(dark);
    if (isPrinting() && this.drawing.width > 0) {
      window.cancelAnimationFrame(this.animation); // paper shows where a zoom ends
      this.view = this.#target();
    }
    this.#draw();
  }

  /** @param {Float64Array | null} weights what a leaf counts */
  resizeNodes(weights) {
    this.layout = new IcicleLayout(this.report, weights);
    this.#moveTo(this.#target());
  }

  /**
   * Fills the map with a node; -1 shows all.
   * @param {number} column
   */
  zoomTo(column) {
    if (column === this.zoomed) return;
    this.zoomed = column;
    this.#unpoint();
    this.dispatchEvent(new Event("zoom"));
    this.#moveTo(this.#target());
  }

  zoomOut() {
    if (this.zoomed < 0) return;
    const above = this.report.parent[this.zoomed];
    if (above >= 0) this.choice.choose(above);
    else this.zoomTo(-1);
    this.focused = Math.max(above, this.report.roots[0]);
    this.#placeRings();
  }

  /**
   * What to fill the map with so that a node is seen: itself, or for a leaf its parent, unless the leaf has too many sisters.
   * @param {number} column
   */
  #fillingFor(column) {
    const above = this.report.parent[column];
    if (this.report.childCount(column) > 0) return column;
    if (this.report.isWithin(column, this.zoomed) && column !== this.zoomed && this.#heightWithin(column, this.zoomed) >= LINE) return this.zoomed;
    return this.#heightWithin(column, above) >= LEAST_TARGET ? above : column;
  }

  /**
   * @param {number} column
   * @param {number} filling
   */
  #heightWithin(column, filling) {
    const { top, bottom } = this.layout;
    const whole = filling < 0 ? 1 : bottom[filling] - top[filling];
    return ((bottom[column] - top[column]) / whole) * this.drawing.height;
  }

  #target() {
    return this.layout.view(this.zoomed, this.drawing.width, this.drawing.height);
  }

  #fit() {
    // A hidden map has no width; it is fitted when it is shown.
    const width = this.frame.clientWidth;
    if (width === 0) return;
    const narrow = width < 560;
    const most = Math.max(360, Math.min(narrow ? 560 : 760, window.innerHeight * 0.66));
    const leaves = this.report.order.reduce((count, column) => count + (this.report.childCount(column) === 0 ? 1 : 0), 0);
    const height = Math.round(Math.min(most, Math.max(280, leaves * 34)));
    if (width === this.drawing.width && height === this.drawing.height && this.drawing.density === Math.min(window.devicePixelRatio || 1, 3)) return;
    this.drawing.resize(width, height);
    this.drawing.prepareHatch(this.dark);
    window.cancelAnimationFrame(this.animation);
    this.view = this.#target();
    this.#draw();
  }

  /** @param {View} goal */
  #moveTo(goal) {
    window.cancelAnimationFrame(this.animation);
    if (motionReduced() || this.drawing.width === 0) {
      this.view = goal;
      this.#draw();
      return;
    }
    const start = this.view;
    const began = performance.now();
    const step = (/** @type {number} */ now) => {
      const time = Math.min(1, Math.max(0, (now - began) / ZOOM_MILLISECONDS));
      const share = time * time * (3 - 2 * time);
      const between = (/** @type {number} */ a, /** @type {number} */ b) => a + share * (b - a);
      this.view =
        time === 1
          ? goal
          : { from: between(start.from, goal.from), to: between(start.to, goal.to), edges: start.edges.map((edge, depth) => between(edge, goal.edges[depth])) };
      this.#draw();
      if (time < 1) this.animation = window.requestAnimationFrame(step);
    };
    this.animation = window.requestAnimationFrame(step);
  }

  #draw() {
    if (this.drawing.width === 0) return;
    const began = performance.now();
    this.drawing.draw(this.layout, this.view, this.palette);
    this.drawMilliseconds = performance.now() - began;
    this.#placeRings();
  }

  /**
   * @param {number} column
   */
  #box(column) {
    const { from, to, edges } = this.view;
    const scale = this.drawing.height / (to - from);
    const depth = this.report.depth[column];
    const top = Math.max(0, (this.layout.top[column] - from) * scale);
    const bottom = Math.min(this.drawing.height, (this.layout.bottom[column] - from) * scale);
    return { left: edges[depth], width: edges[depth + 1] - edges[depth], top, height: bottom - top };
  }

  #placeRings() {
    this.#placeRing("ring-hover", this.hovered);
    this.#placeRing("ring-chosen", this.choice.node);
    this.#placeRing("ring-focus", document.activeElement === this.canvas && this.canvas.matches(":focus-visible") ? this.focused : -1);
  }

  /**
   * @param {string} id
   * @param {number} column
   */
  #placeRing(id, column) {
    const ring = byId(id);
    const box = column >= 0 ? this.#box(column) : null;
    ring.hidden = !box || box.width < 1 || box.height <= 0;
    if (!box || ring.hidden) return;
    ring.style.transform = `translate(${box.left}px, ${box.top}px)`;
    ring.style.width = `${Math.max(3, box.width - 1)}px`;
    ring.style.height = `${Math.max(3, box.height - (box.height > 4 ? 1 : 0))}px`;
  }

  /**
   * The node at a place, or the lowest of its ancestors that is high enough to be meant.
   * @param {MouseEvent} event
   */
  #nodeAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const { from, to, edges } = this.view;
    let depth = 0;
    while (depth < this.report.deepest && edges[depth + 1] <= x) depth++;
    const exact = this.layout.at(depth, from + (y / this.drawing.height) * (to - from));
    let meant = exact;
    while (meant >= 0 && this.#heightWithin(meant, this.zoomed) < LEAST_TARGET) meant = this.report.parent[meant];
    return { exact, meant };
  }

  /** @param {PointerEvent} event */
  #point(event) {
    if (event.pointerType === "touch") return;
    const { exact, meant } = this.#nodeAt(event);
    this.canvas.classList.toggle("pointing", meant >= 0);
    if (meant < 0) {
      this.#unpoint();
      return;
    }
    if (meant !== this.hovered) {
      this.hovered = meant;
      this.#placeRings();
    }
    this.#showTip(event, meant, exact !== meant);
  }

  #unpoint() {
    this.hovered = -1;
    byId("tip").hidden = true;
    this.#placeRings();
  }

  /**
   * @param {MouseEvent} event
   * @param {number} column
   * @param {boolean} inStrip
   */
  #showTip(event, column, inStrip) {
    const tip = byId("tip");
    tip.replaceChildren(...tipLines(this.report, this.choice.run, column, inStrip));
    tip.hidden = false;
    const frame = this.frame.getBoundingClientRect();
    const x = event.clientX - frame.left;
    const y = event.clientY - frame.top;
    const left = x + 18 + tip.offsetWidth > frame.width ? x - tip.offsetWidth - 14 : x + 18;
    const top = Math.min(y + 14, frame.height - tip.offsetHeight - 6);
    tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const { meant } = this.#nodeAt(event);
    if (meant < 0) return;
    if (meant === this.zoomed && this.choice.node === meant) this.zoomOut();
    else if (meant === this.zoomed && event.detail > 0 && this.report.childCount(meant) > 0) this.zoomOut();
    else this.choice.choose(meant);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    /** @type {Record<string, () => void>} */
    const moves = {
      ArrowRight: () => this.#focus(this.report.children(this.focused)[0] ?? this.focused),
      ArrowLeft: () => this.#focus(Math.max(this.report.parent[this.focused] ?? -1, -1)),
      ArrowDown: () => this.#focus(this.#neighbour(1)),
      ArrowUp: () => this.#focus(this.#neighbour(-1)),
      Enter: () => this.choice.choose(this.focused),
      " ": () => this.choice.choose(this.focused),
      Escape: () => this.zoomOut(),
      Backspace: () => this.zoomOut(),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    if (this.focused < 0) this.focused = Math.max(this.zoomed, this.report.roots[0]);
    move();
  }

  /**
   * The node above or below at the same depth.
   * @param {number} step
   */
  #neighbour(step) {
    const level = this.report.levels[this.report.depth[this.focused]];
    return level[level.indexOf(this.focused) + step] ?? this.focused;
  }

  /** @param {number} column */
  #focus(column) {
    if (column < 0) return;
    this.focused = column;
    const seen = this.report.isWithin(column, this.zoomed) && this.#heightWithin(column, this.zoomed) >= LEAST_TARGET;
    if (!seen) this.zoomTo(this.#heightWithin(column, this.report.parent[column]) >= LEAST_TARGET ? this.report.parent[column] : column);
    byId("icicle-status").textContent = `${this.report.names[column]}, depth ${this.report.depth[column]}, ${this.palette.caption(column)}`;
    this.#placeRings();
  }
}

/**
 * @param {RunsReport} report
 * @param {Run} run
 * @param {number} column
 * @param {boolean} inStrip
 */
function tipLines(report, run, column, inStrip) {
  const state = run.state[column];
  const below = report.end[column] - report.position[column] - 1;
  const lines = [element("p", { class: "tip-name" }, isolated(report.fullNames[column]))];
  if (inStrip) lines.push(element("p", { class: "tip-note", text: `${counted(below, "node")} below it, too thin to draw: click to zoom in` }));
  const reason = state === MISSED ? report.reasons[run.reason[column]] : undefined;
  lines.push(element("p", { class: "tip-state" }, stateMark(state), STATE_LABELS[state] + (reason ? `: ${reason.label}` : "")));
  if (state <= MISSED) lines.push(element("p", { text: `recall ${asPercent(run.recall[column])} · precision ${asPercent(run.precision[column])} · F1 ${asPercent(run.f1[column])}` }));
  const figures = [counted(run.rows[column], "row"), counted(run.training[column], "training row")];
  if (!Number.isNaN(run.uncertainty[column])) figures.push(`uncertainty ${asNumber(run.uncertainty[column])}`);
  lines.push(element("p", { text: figures.join(" · ") }));
  return lines;
}

/**
 * A small sign for a state, distinct by shape as well as by colour.
 * @param {number} state
 */
function stateMark(state) {
  return element("span", { class: `mark mark-${["found", "missed", "none", "none"][state]}`, "aria-hidden": "true" });
}
