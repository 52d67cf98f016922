// @ts-check
// Which nodes the table shows.

/**
 * @param {string} label
 * @param {...Node} inputs
 */
function field(label, ...inputs) {
  return element("label", { class: "field" }, element("span", { class: "field-label", text: label }), ...inputs);
}

/**
 * @param {string} name
 * @param {[string, string][]} options value and label
 */
function choices(name, options) {
  return element("select", { name }, ...options.map(([value, label]) => element("option", { value, text: label })));
}

/**
 * @param {string} label
 * @param {string} name
 */
function rangeField(label, name) {
  const bound = (/** @type {string} */ side, /** @type {string} */ words) => element("input", { type: "number", min: 0, step: 1, inputmode: "numeric", name: `${name}-${side}`, placeholder: words, "aria-label": `${label} ${words}` });
  return element("div", { class: "field", role: "group", "aria-label": label }, element("span", { class: "field-label", text: label }), element("span", { class: "range" }, bound("from", "from"), bound("to", "to")));
}

/** Sends "filter" when another set of nodes passes. */
class NodeFilters extends EventTarget {
  /**
   * @param {RunsReport} report
   * @param {Choice} choice
   */
  constructor(report, choice) {
    super();
    this.report = report;
    this.choice = choice;
    this.form = /** @type {HTMLFormElement} */ (byId("filters"));
    this.form.append(...this.#fields());
    this.lowered = report.searchNames.map((name) => name.toLowerCase());
    const tell = () => this.dispatchEvent(new Event("filter"));
    const tellLater = afterPause(tell, SEARCH_PAUSE);
    this.form.addEventListener("input", (event) => (/** @type {HTMLInputElement} */ (event.target).type === "checkbox" ? tell() : tellLater()));
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.form.addEventListener("reset", () => window.setTimeout(tell, 0)); // the fields are emptied after this event
    choice.addEventListener("run", tell);
  }

  #fields() {
    const { report } = this;
    const states = STATE_LABELS.map((label, state) => element("label", { class: "chip", title: STATE_HELP[state] }, element("input", { type: "checkbox", name: "state", value: state, checked: true }), stateMark(state), label));
    const someUnknown = report.runs.some((run) => run.state.some((state, column) => state === MISSED && run.reason[column] === NO_REASON));
    const numbers = [...report.reasons.keys(), ...(someUnknown ? [NO_REASON] : [])];
    const reasons = choices("reason", [["", "any"], ...numbers.map((number) => /** @type {[string, string]} */ ([String(number), report.reason(number).label]))]);
    const fields = [
      field("Name contains", element("input", { type: "search", name: "text", autocomplete: "off", spellcheck: "false" })),
      element("div", { class: "field field-states", role: "group", "aria-label": "State" }, element("span", { class: "field-label", text: "State" }), element("span", { class: "chips" }, ...states)),
      field("Likely reason", reasons),
      rangeField("Depth", "depth"),
      rangeField("Training rows", "training"),
    ];
    if (report.runs.length > 1) fields.push(field("Against the first run", choices("change", [["", "all"], [String(GAINED), "gained"], [String(LOST), "lost"], [String(SAME), "same"]])));
    fields.push(element("button", { type: "reset", class: "plain-button", text: "Clear filters" }));
    return fields;
  }

  /**
   * @param {string} name
   * @param {number} otherwise
   */
  #bound(name, otherwise) {
    const text = /** @type {HTMLInputElement} */ (this.form.elements.namedItem(name)).value;
    return text === "" || Number.isNaN(Number(text)) ? otherwise : Number(text);
  }

  /** @param {string} name */
  #text(name) {
    const input = /** @type {HTMLInputElement | null} */ (this.form.elements.namedItem(name));
    return input ? input.value : "";
  }

  /** The columns of the nodes that pass, in order. */
  passing() {
    const { report, choice, lowered } = this;
    const run = choice.run;
    const text = this.#text("text").trim().toLowerCase();
    const states = new Set(new FormData(this.form).getAll("state").map(Number));
    const reason = this.#text("reason");
    const change = this.#text("change");
    const depths = [this.#bound("depth-from", 0), this.#bound("depth-to", Infinity)];
    const rows = [this.#bound("training-from", 0), this.#bound("training-to", Infinity)];
    const passing = [];
    for (let column = 0; column < report.size; column++) {
      if (!states.has(run.state[column])) continue;
      if (reason !== "" && (run.state[column] !== MISSED || run.reason[column] !== Number(reason))) continue;
      if (report.depth[column] < depths[0] || report.depth[column] > depths[1]) continue;
      if (run.training[column] < rows[0] || run.training[column] > rows[1]) continue;
      if (change !== "" && report.change(choice.runNumber, column) !== Number(change)) continue;
      if (text !== "" && !lowered[column].includes(text)) continue;
      passing.push(column);
    }
    return passing;
  }

  /**
   * Only the nodes that are missed for one reason, or for one that is not known.
   * @param {number} reason
   */
  onlyReason(reason) {
    this.form.reset();
    /** @type {HTMLSelectElement} */ (this.form.elements.namedItem("reason")).value = String(reason);
    this.dispatchEvent(new Event("filter"));
  }
}
