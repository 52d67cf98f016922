// @ts-check
// Finding a node by a part of its name, as one types.

const MOST_HITS = 50;
const SEARCH_PAUSE = 120;

/**
 * The nodes whose names hold the words, the best first: the whole name, its beginning, the beginning of a word, any part.
 * @param {string[]} lowered
 * @param {string} words in lower case
 */
function findNodes(lowered, words) {
  /** @type {number[][]} */
  const ranked = [[], [], [], []];
  lowered.forEach((name, column) => {
    const at = name.indexOf(words);
    if (at < 0) return;
    if (name.length === words.length) ranked[0].push(column);
    else if (at === 0) ranked[1].push(column);
    else ranked[/[\p{L}\p{N}]/u.test(name[at - 1]) ? 3 : 2].push(column);
  });
  return ranked.flat();
}

class Search {
  /**
   * @param {RunsReport} report
   * @param {Choice} choice
   */
  constructor(report, choice) {
    this.report = report;
    this.choice = choice;
    /** @type {string[] | null} */
    this.lowered = null;
    this.input = inputById("search");
    this.panel = byId("search-panel");
    this.list = byId("search-hits");
    this.active = -1;
    /** What the list was made for. */
    this.answered = "";
    const later = afterPause(() => this.#show(), SEARCH_PAUSE);
    this.input.addEventListener("input", later);
    this.input.addEventListener("focus", () => this.#show());
    this.input.addEventListener("blur", () => this.#hide());
    this.input.addEventListener("keydown", (event) => this.#key(event));
    // A press would move the focus away, which hides the list before the click arrives.
    this.panel.addEventListener("pointerdown", (event) => event.preventDefault());
    this.list.addEventListener("click", (event) => {
      const hit = /** @type {HTMLElement} */ (event.target).closest("[role=option]");
      if (hit) this.#choose(Number(/** @type {HTMLElement} */ (hit).dataset.column));
    });
  }

  #show() {
    this.answered = this.input.value;
    const words = this.input.value.trim().toLowerCase();
    if (words === "" || document.activeElement !== this.input) {
      this.#hide();
      return;
    }
    this.lowered ??= this.report.searchNames.map((name) => name.toLowerCase());
    const found = findNodes(this.lowered, words);
    this.list.replaceChildren(...found.slice(0, MOST_HITS).map((column, place) => this.#hit(column, place, words)));
    byId("search-count").textContent = found.length === 0 ? "No node has this in its name." : found.length > MOST_HITS ? `the first ${MOST_HITS} of ${asCount(found.length)}` : counted(found.length, "node");
    this.panel.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.#activate(found.length > 0 ? 0 : -1);
  }

  #hide() {
    this.panel.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  /**
   * @param {number} column
   * @param {number} place
   * @param {string} words
   */
  #hit(column, place, words) {
    const { report } = this;
    const run = this.choice.run;
    const above = report.parent[column];
    const where = above >= 0 ? element("span", { class: "hit-where" }, "in ", isolated(cut(report.names[above], 60))) : element("span", { class: "hit-where", text: "root" });
    return element(
      "li",
      { role: "option", id: `hit-${place}`, "data-column": column, "aria-selected": "false" },
      stateMark(run.state[column]),
      element("span", { class: "hit-name" }, markedName(report.names[column], words)),
      where,
      element("span", { class: "hit-rows", text: counted(run.rows[column], "row") }),
    );
  }

  /** @param {number} place */
  #activate(place) {
    this.active = place;
    [...this.list.children].forEach((hit, at) => hit.setAttribute("aria-selected", String(at === place)));
    const hit = this.list.children[place];
    if (!hit) return;
    this.input.setAttribute("aria-activedescendant", hit.id);
    hit.scrollIntoView({ block: "nearest" });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const count = this.list.children.length;
    if (event.key === "Escape" && !this.panel.hidden) {
      event.preventDefault();
      this.#hide();
    } else if (event.key === "Enter") {
      event.preventDefault();
      // Enter may come before the pause is over: search for what is written now.
      if (this.panel.hidden || this.input.value !== this.answered) this.#show();
      const hit = /** @type {HTMLElement | undefined} */ (this.list.children[this.active]);
      if (hit && !this.panel.hidden) this.#choose(Number(hit.dataset.column));
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && count > 0) {
      event.preventDefault();
      if (this.panel.hidden) this.#show();
      else this.#activate((this.active + (event.key === "ArrowDown" ? 1 : count - 1)) % count);
    }
  }

  /** @param {number} column */
  #choose(column) {
    this.#hide();
    this.choice.choose(column);
  }
}

/**
 * A name with the part that was searched for marked.
 * @param {string} name
 * @param {string} words
 */
function markedName(name, words) {
  const lowered = name.toLowerCase();
  const at = lowered.indexOf(words);
  // A few characters change their length in lower case; then the places do not match, and nothing is marked.
  if (at < 0 || lowered.length !== name.length) return isolated(name);
  const marked = isolated("");
  marked.append(name.slice(0, at), element("mark", { text: name.slice(at, at + words.length) }), name.slice(at + words.length));
  return marked;
}
