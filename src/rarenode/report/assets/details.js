// @ts-check
// All that is known about the chosen node, for every run side by side.

/** @type {{label: string, help: string, show: (run: Run, column: number) => string}[]} */
const DETAILS = [
  { label: "State", help: "", show: (run, column) => STATE_LABELS[run.state[column]] },
  { label: "Training rows", help: "training rows labelled with it", show: (run, column) => asCount(run.training[column]) },
  { label: "Rows", help: "rows labelled with it", show: (run, column) => asCount(run.rows[column]) },
  { label: "Decided", help: "rows in which the model decides for it", show: (run, column) => asCount(run.decided[column]) },
  { label: "Found", help: "rows labelled with it in which it is decided", show: (run, column) => asCount(run.found[column]) },
  { label: "Precision", help: "found of decided", show: (run, column) => scored(run, column, run.precision[column]) },
  { label: "Recall", help: "found of rows", show: (run, column) => scored(run, column, run.recall[column]) },
  { label: "F1", help: "harmonic mean of precision and recall", show: (run, column) => scored(run, column, run.f1[column]) },
  { label: "Threshold", help: "the probability from which it is decided", show: (run, column) => thresholdText(run, column) },
  { label: "Uncertainty", help: "mean over the rows labelled with it or in which it is decided", show: (run, column) => asNumber(run.uncertainty[column]) },
];

/** Of guaranteed sets, if there are any. @type {typeof DETAILS} */
const SET_DETAILS = [
  { ...SET_FROM, show: guaranteedText },
  { ...SET_SIZE, show: (run, column) => asPercent(guaranteedValue(run, "size", column)) },
  { ...SET_RECALL, show: (run, column) => asPercent(guaranteedValue(run, "recall", column)) },
];

/**
 * @param {Run} run
 * @param {number} column
 * @param {number} value
 */
function scored(run, column, value) {
  return run.state[column] <= MISSED ? asPercent(value) : NOTHING;
}

/**
 * @param {Run} run
 * @param {number} column
 */
function thresholdText(run, column) {
  if (!run.hasThresholds) return NOTHING;
  return Number.isNaN(run.threshold[column]) ? "never" : asNumber(run.threshold[column]);
}

class Details {
  /**
   * @param {RunsReport} report
   * @param {Choice} choice
   */
  constructor(report, choice) {
    this.report = report;
    this.choice = choice;
    this.place = byId("details");
    for (const kind of ["node", "run"]) choice.addEventListener(kind, () => this.show());
    this.place.addEventListener("keydown", (event) => {
      if (event.key === "Escape") choice.choose(-1);
    });
  }

  show() {
    const { node } = this.choice;
    this.place.classList.toggle("empty", node < 0);
    this.place.replaceChildren(...(node < 0 ? this.#invitation() : this.#parts(node)));
    this.place.scrollTop = 0;
    // Of many runs, the one that is shown comes into sight.
    const sideways = this.place.querySelector(".sideways");
    const current = /** @type {HTMLElement | null} */ (this.place.querySelector("th.current"));
    if (sideways && current) sideways.scrollLeft = current.offsetLeft + current.offsetWidth - sideways.clientWidth;
  }

  #invitation() {
    return [
      element("h3", { text: "No node chosen" }),
      element("p", { class: "quiet", text: "Choose a node in the map, the tree or the table, or search for one by name: its place, its figures and, if it is missed, the likely reason are shown here." }),
    ];
  }

  /** @param {number} column */
  #parts(column) {
    const close = element("button", { type: "button", class: "close", "aria-label": "Close the details", title: "Close" });
    close.addEventListener("click", () => this.choice.choose(-1));
    return [
      element("div", { class: "details-head" }, element("h3", {}, isolated(this.report.fullNames[column])), close),
      this.#place(column),
      ...this.#why(column, true),
      this.#figures(column),
      ...this.#noGuarantee(column),
      ...this.#why(column, false),
    ];
  }

  /** @param {number} column */
  #link(column) {
    const link = element("button", { type: "button", class: "link", title: this.report.fullNames[column] }, isolated(cut(this.report.names[column], 60)));
    link.addEventListener("click", () => this.choice.choose(column));
    return link;
  }

  /** @param {number} column */
  #place(column) {
    const { report } = this;
    const place = element("div", { class: "place" });
    const path = report.ancestors(column);
    if (path.length > 0) place.append(element("ol", { class: "path", "aria-label": "Ancestors" }, ...path.map((above) => element("li", {}, this.#link(above)))));
    const others = (report.others[column] ?? []).filter((other) => report.has(other));
    if (others.length > 0) {
      const list = element("p", { class: "others" }, `${others.length === 1 ? "Another parent" : "Other parents"}: `);
      others.slice(0, 20).forEach((other, number) => list.append(number > 0 ? ", " : "", this.#link(other)));
      if (others.length > 20) list.append(`, and ${others.length - 20} more`);
      place.append(list);
    }
    const below = report.end[column] - report.position[column] - 1;
    const children = report.childCount(column);
    const family = children === 0 ? "no children" : `${counted(children, "child", "children")}, ${counted(below, "node")} below`;
    place.append(element("p", { class: "quiet", text: `Depth ${report.depth[column]} · ${family}` }));
    return place;
  }

  /**
   * Why it is missed, in the run shown or in the others. Runs that say the same share a part.
   * @param {number} column
   * @param {boolean} shown
   */
  #why(column, shown) {
    const { report, choice } = this;
    /** @type {Map<string, {names: string[], run: Run}>} */
    const parts = new Map();
    for (const run of report.runs) {
      if (run.state[column] !== MISSED || (run === choice.run) !== shown) continue;
      const key = `${run.reason[column]} ${run.also[column]} ${run.explanations[column]}`;
      const part = parts.get(key) ?? { names: [], run };
      part.names.push(run.name);
      parts.set(key, part);
    }
    return [...parts.values()].map(({ names, run }) => this.#missedPart(column, run, shown ? [] : names));
  }

  /**
   * @param {number} column
   * @param {Run} run
   * @param {string[]} names of the runs, if they have to be said
   */
  #missedPart(column, run, names) {
    const reason = this.report.reason(run.reason[column]);
    const part = element("div", { class: names.length > 0 ? "why why-other" : "why" });
    if (names.length > 0) part.append(element("p", { class: "why-run" }, "In ", ...names.flatMap((name, number) => [number > 0 ? "; " : "", isolated(cut(name, 80))])));
    part.append(element("p", { class: "why-label" }, stateMark(MISSED), `Missed: ${reason.label}`));
    const explanation = run.explanations[column];
    if (explanation) part.append(element("p", {}, isolated(cut(explanation, 1000))));
    part.append(element("p", { class: "quiet" }, ...withCode(reason.help)));
    const also = (run.also[column] ?? []).map((number) => this.report.reasons[number]).filter(Boolean);
    if (also.length > 0) part.append(element("p", { class: "also" }, "Also: ", ...also.flatMap(({ label, help }, number) => [number > 0 ? ", " : "", element("span", { title: help, text: label })])));
    return part;
  }

  /**
   * Why the run shown cannot guarantee to find it.
   * @param {number} column
   */
  #noGuarantee(column) {
    const why = whyNotGuaranteed(this.choice.run, column);
    return why ? [element("p", { class: "quiet", text: why })] : [];
  }

  /** @param {number} column */
  #figures(column) {
    const { report, choice } = this;
    const several = report.runs.length > 1;
    const shown = DETAILS.filter(
      ({ label }) => (label !== "Threshold" || report.runs.some((run) => run.hasThresholds)) && (label !== "Uncertainty" || report.runs.some((run) => run.hasUncertainty)),
    );
    if (hasGuarantees(report)) shown.push(...SET_DETAILS);
    const table = element("table", { class: report.runs.length > 2 ? "figures-table many" : "figures-table" });
    table.style.setProperty("--runs", String(report.runs.length));
    if (several) {
      const heads = report.runs.map((run, number) => element("th", { scope: "col", class: number === choice.runNumber ? "current" : "", title: run.name }, isolated(run.name)));
      table.append(element("thead", {}, element("tr", {}, element("td"), ...heads)));
    }
    const body = element("tbody");
    for (const { label, help, show } of shown) {
      const cells = report.runs.map((run, number) => {
        const state = run.state[column];
        const classes = [several && number === choice.runNumber ? "current" : "", label === "State" ? `state-${state}` : ""].join(" ").trim();
        const cell = element("td", { class: classes, text: show(run, column) });
        if (label === "State") cell.prepend(stateMark(state));
        return cell;
      });
      body.append(element("tr", {}, element("th", { scope: "row", text: label, title: help || null }), ...cells));
    }
    table.append(body);
    return element("div", { class: "sideways" }, table);
  }
}
