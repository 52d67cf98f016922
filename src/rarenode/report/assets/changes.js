// @ts-check
// Which nodes the shown run gained and lost against the first one, the rarest first.

const CHANGES_AT_A_TIME = 25;

/**
 * @param {RunsReport} report
 * @param {Choice} choice
 */
function showChanges(report, choice) {
  const place = byId("changes");
  place.hidden = report.runs.length < 2;
  if (place.hidden) return;
  if (choice.runNumber === 0) {
    place.replaceChildren(element("p", { class: "quiet", text: "The first run is shown, which the others are compared with. Choose another one to see the nodes that it gained and lost." }));
    return;
  }
  const words = element("p", { class: "lead" }, isolated(choice.run.name), " against ", isolated(report.runs[0].name), ", node by node, the rarest first:");
  place.replaceChildren(words, element("div", { class: "changes" }, changeList(report, choice, GAINED), changeList(report, choice, LOST)));
}

/**
 * @param {RunsReport} report
 * @param {Choice} choice
 * @param {number} change
 */
function changeList(report, choice, change) {
  const [first, run] = [report.runs[0], choice.run];
  const nodes = Array.from({ length: report.size }, (_, column) => column).filter((column) => report.change(choice.runNumber, column) === change);
  nodes.sort((a, b) => run.training[a] - run.training[b] || a - b);
  const gained = change === GAINED;
  const part = element("div", { class: gained ? "changes-gained" : "changes-lost" });
  part.append(element("h3", {}, changeMark(change), `${asCount(nodes.length)} ${gained ? "gained" : "lost"}`));
  if (nodes.length === 0) {
    part.append(element("p", { class: "quiet", text: gained ? "Every node that is found was found in the first run." : "Every node that the first run found is found." }));
    return part;
  }
  const head = ["node", "training rows", "rows", "F1 before", "after"].map((label, at) => element("th", { scope: "col", text: label, class: at === 0 ? "words" : "" }));
  const body = element("tbody");
  const table = element("table", { class: "change-table" }, element("thead", {}, element("tr", {}, ...head)), body);
  const more = element("button", { type: "button", class: "more" });
  const onPaper = element("p", { class: "print-only" });
  const add = () => {
    const from = body.children.length;
    for (const column of nodes.slice(from, from + CHANGES_AT_A_TIME * (from === 0 ? 1 : 4))) body.append(changeRow(report, choice, column, [first, run]));
    const left = nodes.length - body.children.length;
    more.hidden = left === 0;
    more.textContent = `show more (${asCount(left)} left)`;
    onPaper.textContent = left === 0 ? "" : `And ${asCount(left)} more, in the files next to this page.`;
  };
  more.addEventListener("click", add);
  add();
  part.append(element("div", { class: "changes-scroll", tabindex: 0, role: "region", "aria-label": gained ? "Nodes gained" : "Nodes lost" }, table, more, onPaper));
  return part;
}

/**
 * @param {RunsReport} report
 * @param {Choice} choice
 * @param {number} column
 * @param {Run[]} runs before and after
 */
function changeRow(report, choice, column, [before, after]) {
  const name = element("button", { type: "button", class: "link", title: report.fullNames[column] }, isolated(report.names[column]));
  name.addEventListener("click", () => {
    choice.choose(column);
    byId("map").scrollIntoView({ behavior: motionReduced() ? "auto" : "smooth" });
  });
  const figures = [asCount(after.training[column]), asCount(after.rows[column]), asPercent(before.f1[column]), asPercent(after.f1[column])];
  return element("tr", {}, element("td", { class: "words" }, name), ...figures.map((text) => element("td", { text })));
}
