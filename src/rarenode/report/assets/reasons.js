// @ts-check
// How many nodes are missed for which reason: a bar of shares, and a list that leads to the nodes in the table.

/**
 * @param {RunsReport} report
 * @param {Run} run
 * @param {boolean} dark
 * @param {(reason: number) => void} open shows the missed nodes of a reason in the table
 */
function showReasons(report, run, dark, open) {
  const numbers = [...report.reasons.keys(), NO_REASON];
  const counts = new Map(numbers.map((number) => [number, 0]));
  const states = [0, 0, 0, 0];
  run.state.forEach((state, column) => {
    states[state]++;
    if (state === MISSED) counts.set(run.reason[column], (counts.get(run.reason[column]) ?? 0) + 1);
  });
  const known = states[FOUND] + states[MISSED];
  const sentence = element("p", { class: "lead" });
  if (states[MISSED] === 0) sentence.append(`All of ${counted(known, "node")} with rows are found.`);
  else sentence.append(element("strong", { text: asCount(states[MISSED]) }), ` of ${counted(known, "node")} with rows ${states[MISSED] === 1 ? "is" : "are"} missed: decided in none of ${states[MISSED] === 1 ? "its" : "their"} rows.`);
  const aside = [states[NO_ROWS] > 0 && `${counted(states[NO_ROWS], "node")} ${states[NO_ROWS] === 1 ? "has" : "have"} no rows to be found in`, states[NOT_SCORED] > 0 && `${counted(states[NOT_SCORED], "node")} ${states[NOT_SCORED] === 1 ? "is" : "are"} not scored`].filter(Boolean);
  if (aside.length > 0) sentence.append(element("span", { class: "quiet", text: ` ${aside.join("; ")}.` }));
  const place = byId("reasons");
  place.replaceChildren(sentence);
  if (states[MISSED] === 0) return;
  const bar = element("div", { class: "share-bar", "aria-hidden": "true" });
  const list = element("ul", { class: "reason-list" });
  for (const number of numbers) {
    const count = counts.get(number) ?? 0;
    if (count === 0) continue;
    const reason = report.reason(number);
    const look = reasonFill(number, dark);
    const part = element("span", { title: `${reason.label}: ${asCount(count)}` });
    part.style.backgroundColor = look.css;
    part.style.flexGrow = String(count);
    bar.append(part);
    list.append(element("li", {}, reasonButton(reason, count, states[MISSED], look, () => open(number)), element("p", { class: "quiet" }, ...withCode(reason.help))));
  }
  place.append(bar, list);
}

/**
 * @param {{label: string, help: string}} reason
 * @param {number} count
 * @param {number} all
 * @param {Fill} look
 * @param {() => void} open
 */
function reasonButton(reason, count, all, look, open) {
  const button = element(
    "button",
    { type: "button", class: "reason", title: "Show these nodes in the table" },
    swatch(look),
    element("span", { class: "reason-label", text: reason.label }),
    element("span", { class: "reason-count", text: asCount(count) }),
    element("span", { class: "reason-share", text: asPercent(count / all) }),
  );
  button.addEventListener("click", open);
  return button;
}
