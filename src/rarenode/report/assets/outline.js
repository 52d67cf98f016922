// @ts-check
// The hierarchy as a tree of lines. Children become elements when their parent is first opened, long families a
// hundred at a time.

const PORTION = 100;

class Outline {
  /**
   * @param {RunsReport} report
   * @param {Choice} choice
   * @param {() => boolean} isDark
   */
  constructor(report, choice, isDark) {
    this.report = report;
    this.choice = choice;
    this.isDark = isDark;
    this.place = byId("tree");
    this.several = report.runs.length > 1;
    this.stale = true;
    this.fills = scoreFills(false);
    this.place.addEventListener("click", (event) => this.#click(event));
    this.place.addEventListener("keydown", (event) => this.#key(event));
    choice.addEventListener("node", () => this.#showChosen());
    for (const kind of ["run", "theme"]) choice.addEventListener(kind, () => this.#refresh());
  }

  /** Makes the tree where it is out of date, once it can be seen. */
  show() {
    if (!this.stale) return;
    this.stale = false;
    this.fills = scoreFills(this.isDark());
    byId("tree-key").replaceChildren(this.several ? boxKey(this.report) : "");
    const columns = boxColumns(this.report.runs.length);
    this.place.className = this.several ? (columns > 4 ? "several crowded" : "several") : "";
    this.place.style.setProperty("--boxes", String(columns));
    const tree = element("ul", { role: "tree", "aria-label": "Tree of nodes", class: "tree" });
    this.place.replaceChildren(this.#heading(), tree);
    tree.append(...this.#portion({ parent: -1, level: 1, from: 0, to: this.report.roots.length }, 0));
    const first = /** @type {HTMLElement | null} */ (tree.querySelector("[role=treeitem]"));
    if (first) first.tabIndex = 0;
    if (this.report.roots.length === 1 && first) this.#open(first);
    this.#showChosen();
  }

  #refresh() {
    this.stale = true;
    if (!byId("panel-tree").hidden) this.show();
  }

  #heading() {
    const labels = ["rows", "recall", ...(this.several ? [] : ["F1"])];
    const line = element("div", { class: "line line-head", "aria-hidden": "true" }, element("span", { class: "line-name", text: "node" }));
    line.append(...labels.map((label) => element("span", { class: `line-${label.toLowerCase()}`, text: label })));
    if (this.several) line.append(element("span", { class: "line-boxes", text: "F1 by run" }));
    return line;
  }

  /**
   * The lines of a part of a family, with buttons for what is left out before and after.
   * @param {{parent: number, level: number, from: number, to: number}} gap what is not shown yet
   * @param {number} start where the lines begin
   */
  #portion(gap, start) {
    const { parent, level, from, to } = gap;
    const family = this.report.children(parent);
    const stop = Math.min(to, start + PORTION);
    const lines = [];
    if (start > from) lines.push(this.#gap({ ...gap, to: start }));
    for (let at = start; at < stop; at++) lines.push(this.#item(family[at], level, at + 1, family.length));
    if (stop < to) lines.push(this.#gap({ ...gap, from: stop }));
    return lines;
  }

  /** @param {{parent: number, level: number, from: number, to: number}} gap */
  #gap(gap) {
    const left = gap.to - gap.from;
    const more = element("button", { type: "button", class: "more", "data-gap": JSON.stringify(gap), "data-parent": gap.parent });
    more.textContent = left > PORTION ? `show ${PORTION} more of ${asCount(left)}` : `show ${left} more`;
    return element("li", { role: "none", class: "more-line" }, more);
  }

  /**
   * @param {HTMLElement} more
   * @param {number} [wanted] the place in the family that is to be shown
   */
  #fill(more, wanted) {
    const gap = JSON.parse(more.dataset.gap ?? "");
    const start = wanted === undefined ? gap.from : Math.max(gap.from, wanted - PORTION / 2);
    /** @type {HTMLElement} */ (more.parentElement).replaceWith(...this.#portion(gap, start));
  }

  /**
   * @param {number} column
   * @param {number} level
   * @param {number} place
   * @param {number} sisters
   */
  #item(column, level, place, sisters) {
    const { report } = this;
    const run = this.choice.run;
    const state = run.state[column];
    const children = report.childCount(column);
    const item = element("li", {
      role: "treeitem",
      tabindex: -1,
      "aria-level": level,
      "aria-posinset": place,
      "aria-setsize": sisters,
      "aria-selected": "false",
      "aria-expanded": children > 0 && "false",
      "data-column": column,
      class: state === MISSED ? "missed" : "",
    });
    const name = element("span", { class: "line-name" });
    const twist = element("span", { class: children > 0 ? "twist" : "twist twist-none", "aria-hidden": "true" });
    // Deep levels on a narrow screen: indentation stops growing before it eats the name.
    name.style.setProperty("--level", String(Math.min(level - 1, 14)));
    const words = element("span", { class: "line-words", title: report.fullNames[column] }, isolated(report.names[column]));
    name.append(twist, stateMark(state), words);
    const change = report.change(this.choice.runNumber, column);
    if (change !== SAME) name.append(changeMark(change));
    if (children > 0) name.append(element("span", { class: "line-count", text: asCount(children) }));
    const line = element("div", { class: "line" }, name, element("span", { class: "line-rows", text: asCount(run.rows[column]) }), this.#bar("recall", column));
    line.append(this.several ? element("span", { class: "line-boxes" }, scoreBoxes(report, column, this.fills)) : this.#bar("f1", column));
    item.append(line);
    return item;
  }

  /**
   * @param {"recall" | "f1"} measure
   * @param {number} column
   */
  #bar(measure, column) {
    const run = this.choice.run;
    const known = run.state[column] <= MISSED;
    const value = run[measure][column];
    const track = element("span", { class: known ? "meter" : "meter meter-none", "aria-hidden": "true" });
    if (known && value > 0) {
      const filled = element("span", { class: "meter-filled" });
      filled.style.width = `${100 * value}%`;
      track.append(filled);
    }
    return element("span", { class: `line-${measure}` }, track, element("span", { class: "line-value", text: known ? asPercent(value) : NOTHING }));
  }

  /** @param {HTMLElement} item */
  #open(item) {
    if (item.getAttribute("aria-expanded") !== "false") return;
    item.setAttribute("aria-expanded", "true");
    const family = item.querySelector(":scope > [role=group]");
    if (family) {
      /** @type {HTMLElement} */ (family).hidden = false;
      return;
    }
    const list = element("ul", { role: "group" });
    const parent = Number(item.dataset.column);
    list.append(...this.#portion({ parent, level: Number(item.getAttribute("aria-level")) + 1, from: 0, to: this.report.childCount(parent) }, 0));
    item.append(list);
  }

  /** @param {HTMLElement} item */
  #close(item) {
    if (item.getAttribute("aria-expanded") !== "true") return;
    item.setAttribute("aria-expanded", "false");
    /** @type {HTMLElement} */ (item.querySelector(":scope > [role=group]")).hidden = true;
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const more = /** @type {HTMLElement | null} */ (target.closest(".more"));
    if (more) {
      this.#fill(more);
      return;
    }
    const item = /** @type {HTMLElement | null} */ (target.closest("[role=treeitem]"));
    if (!item) return;
    if (target.closest(".twist")) {
      if (item.getAttribute("aria-expanded") === "true") this.#close(item);
      else this.#open(item);
      return;
    }
    this.#open(item);
    this.choice.choose(Number(item.dataset.column));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const item = /** @type {HTMLElement} */ (event.target);
    if (item.getAttribute("role") !== "treeitem" || event.altKey || event.ctrlKey || event.metaKey) return;
    const seen = /** @type {HTMLElement[]} */ ([...this.place.querySelectorAll("[role=treeitem]")]).filter((each) => !each.closest("[hidden]"));
    const at = seen.indexOf(item);
    const opened = item.getAttribute("aria-expanded");
    /** @type {Record<string, () => void>} */
    const moves = {
      ArrowDown: () => this.#focus(seen[at + 1]),
      ArrowUp: () => this.#focus(seen[at - 1]),
      Home: () => this.#focus(seen[0]),
      End: () => this.#focus(seen[seen.length - 1]),
      ArrowRight: () => (opened === "true" ? this.#focus(seen[at + 1]) : this.#open(item)),
      ArrowLeft: () => (opened === "true" ? this.#close(item) : this.#focus(item.parentElement?.closest("[role=treeitem]"))),
      Enter: () => this.choice.choose(Number(item.dataset.column)),
      " ": () => this.choice.choose(Number(item.dataset.column)),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  }

  /** @param {Element | null | undefined} item */
  #focus(item) {
    if (!item) return;
    for (const other of this.place.querySelectorAll("[role=treeitem][tabindex='0']")) /** @type {HTMLElement} */ (other).tabIndex = -1;
    /** @type {HTMLElement} */ (item).tabIndex = 0;
    /** @type {HTMLElement} */ (item).focus();
  }

  /** @param {number} column */
  #find(column) {
    return /** @type {HTMLElement | null} */ (this.place.querySelector(`[data-column="${column}"]`));
  }

  /** Opens the tree down to the chosen node. */
  #showChosen() {
    const { node } = this.choice;
    if (this.stale) return;
    for (const other of this.place.querySelectorAll("[aria-selected=true]")) other.setAttribute("aria-selected", "false");
    if (node < 0) return;
    for (const above of this.report.ancestors(node)) {
      const item = this.#reach(above);
      if (item) this.#open(item);
    }
    const item = this.#reach(node);
    if (!item) return;
    item.setAttribute("aria-selected", "true");
    for (const other of this.place.querySelectorAll("[role=treeitem][tabindex='0']")) /** @type {HTMLElement} */ (other).tabIndex = -1;
    item.tabIndex = 0;
    const line = /** @type {HTMLElement} */ (item.firstElementChild);
    const wall = this.place.getBoundingClientRect();
    const at = line.getBoundingClientRect();
    if (at.top < wall.top + 40 || at.bottom > wall.bottom) this.place.scrollTop += at.top - wall.top - wall.height / 3;
  }

  /**
   * Its item; the part of its family around it is made if need be.
   * @param {number} column
   */
  #reach(column) {
    const item = this.#find(column);
    if (item) return item;
    const parent = this.report.parent[column];
    const wanted = Array.prototype.indexOf.call(this.report.children(parent), column);
    const gaps = /** @type {HTMLElement[]} */ ([...this.place.querySelectorAll(`.more[data-parent="${parent}"]`)]);
    const around = gaps.find((more) => {
      const { from, to } = JSON.parse(more.dataset.gap ?? "");
      return from <= wanted && wanted < to;
    });
    if (around) this.#fill(around, wanted);
    return this.#find(column);
  }
}
