// @ts-check
// The table of all nodes: sorted by any column, filtered, and as long as the hierarchy is large.

const ROW_HEIGHT = 36;
const HEAD_HEIGHT = 40;

class NodeTable {
  /**
   * @param {RunsReport} report
   * @param {Choice} choice
   */
  constructor(report, choice) {
    this.report = report;
    this.choice = choice;
    this.columns = nodeColumns(report, choice);
    this.filters = new NodeFilters(report, choice);
    this.sorting = ""; // in the order of the hierarchy, until a heading is pressed
    this.falling = false;
    this.active = 0;
    /** @type {number[]} */
    this.shown = [];
    this.place = byId("nodes-table");
    this.heads = this.columns.map((column) => this.#head(column));
    this.rows = this.#build();
    tellOfMoreColumns(this.place, this.heads);
    this.filters.addEventListener("filter", () => this.show());
    choice.addEventListener("node", () => this.rows.show(this.shown.length));
    byId("download").addEventListener("click", () => this.#download());
  }

  #build() {
    const { place, columns } = this;
    place.setAttribute("role", "grid");
    place.setAttribute("aria-label", "All nodes");
    place.tabIndex = 0;
    // Every line is a separate grid; equal widths keep their columns below each other. The style sheet says how narrow names may get.
    const [, ...rest] = columns;
    const tracks = rest.map(({ least, share }) => (share ? `minmax(${least}rem, ${share}fr)` : `${least}rem`));
    place.style.setProperty("--tracks", `minmax(var(--names), 1fr) ${tracks.join(" ")}`);
    place.style.setProperty("--least", `calc(var(--names) + ${rest.reduce((sum, { least }) => sum + least, 0)}rem)`);
    const body = element("div", { class: "grid-body", role: "rowgroup" });
    place.append(element("div", { class: "grid-head", role: "rowgroup" }, element("div", { role: "row", class: "grid-row" }, ...this.heads)), body);
    body.addEventListener("click", (event) => this.#click(event));
    place.addEventListener("keydown", (event) => this.#key(event));
    place.addEventListener("focus", () => this.#activate(this.active));
    return new VirtualRows(
      place,
      body,
      ROW_HEIGHT,
      () => element("div", { role: "row", class: "grid-row" }, ...columns.map((column) => element("div", { role: "gridcell", class: column.words ? `words cell-${column.key}` : `cell-${column.key}` }))),
      (line, number) => this.#fill(line, number),
    );
  }

  /** @param {NodeColumn} column */
  #head(column) {
    const button = element("button", { type: "button", text: column.label, title: column.help });
    button.addEventListener("click", () => this.sort(column.key));
    return element("div", { role: "columnheader", "aria-sort": "none", class: column.words ? "words" : "", "data-key": column.key }, button);
  }

  /** Filters and sorts anew. */
  show() {
    this.shown = this.filters.passing();
    this.#order();
    this.active = 0;
    this.place.scrollTop = 0;
    this.place.setAttribute("aria-rowcount", String(this.shown.length + 1));
    this.rows.show(this.shown.length);
    const all = asCount(this.report.size);
    byId("shown-count").textContent = this.shown.length === this.report.size ? counted(this.report.size, "node") : `${asCount(this.shown.length)} of ${all} nodes`;
    this.place.classList.toggle("nothing", this.shown.length === 0);
  }

  /**
   * By another column, or the other way round.
   * @param {string} key
   */
  sort(key) {
    if (this.sorting === key) this.falling = !this.falling;
    else {
      this.sorting = key;
      this.falling = false;
    }
    for (const head of this.heads) head.setAttribute("aria-sort", head.dataset.key === key ? (this.falling ? "descending" : "ascending") : "none");
    this.show();
  }

  #order() {
    const column = this.columns.find(({ key }) => key === this.sorting);
    if (!column) return;
    const run = this.choice.run;
    const values = new Float64Array(this.report.size);
    for (const node of this.shown) values[node] = column.sortBy(run, node);
    const sign = this.falling ? -1 : 1;
    this.shown.sort((a, b) => {
      const known = Number(Number.isNaN(values[a])) - Number(Number.isNaN(values[b]));
      if (known !== 0) return known;
      if (values[a] === values[b] || Number.isNaN(values[a])) return a - b;
      return values[a] < values[b] ? -sign : sign;
    });
  }

  /**
   * @param {HTMLElement} line
   * @param {number} number
   */
  #fill(line, number) {
    const node = this.shown[number];
    const run = this.choice.run;
    const state = run.state[node];
    line.id = `node-row-${number}`;
    line.dataset.column = String(node);
    line.setAttribute("aria-rowindex", String(number + 2));
    line.setAttribute("aria-selected", String(node === this.choice.node));
    line.classList.toggle("missed", state === MISSED);
    line.classList.toggle("no-score", state > MISSED);
    line.classList.toggle("active", number === this.active);
    line.classList.toggle("odd", number % 2 === 1);
    this.columns.forEach((column, at) => {
      const cell = /** @type {HTMLElement} */ (line.children[at]);
      const text = column.show(run, node);
      if (column.key === "node") {
        cell.replaceChildren(isolated(text));
        cell.title = text;
      } else if (column.key === "state") cell.replaceChildren(stateMark(state), text);
      else if (column.key === "change") {
        cell.textContent = text;
        cell.classList.toggle("change-gained", text.startsWith("+"));
        cell.classList.toggle("change-lost", text.startsWith("−"));
      } else cell.textContent = text;
      if (column.key === "reason") cell.title = text;
    });
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const line = /** @type {HTMLElement | null} */ (/** @type {HTMLElement} */ (event.target).closest("[role=row]"));
    if (!line) return;
    const node = Number(line.dataset.column);
    this.active = this.shown.indexOf(node);
    this.choice.choose(node);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.target !== this.place || event.altKey || event.ctrlKey || event.metaKey || this.shown.length === 0) return;
    const page = Math.max(1, Math.floor((this.place.clientHeight - HEAD_HEIGHT) / ROW_HEIGHT) - 1);
    /** @type {Record<string, number>} */
    const moves = { ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + page, PageUp: this.active - page, Home: 0, End: this.shown.length - 1 };
    if (event.key in moves) {
      event.preventDefault();
      this.#activate(moves[event.key]);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.choice.choose(this.shown[this.active]);
    }
  }

  /** @param {number} place */
  #activate(place) {
    this.active = Math.max(0, Math.min(this.shown.length - 1, place));
    this.rows.show(this.shown.length);
    this.rows.reveal(this.active, HEAD_HEIGHT);
    this.place.setAttribute("aria-activedescendant", `node-row-${this.active}`);
  }

  #download() {
    const run = this.choice.run;
    download("nodes.csv", csvText([this.columns.map(({ key }) => key), ...this.shown.map((node) => this.columns.map((column) => column.raw(run, node)))]));
  }
}
