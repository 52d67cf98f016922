// @ts-check
// Two views of the hierarchy, one at a time.

/** @param {(name: string) => void} shown */
function listenToTabs(shown) {
  const tabs = /** @type {HTMLElement[]} */ ([byId("tab-icicle"), byId("tab-tree")]);
  const select = (/** @type {HTMLElement} */ chosen) => {
    for (const tab of tabs) {
      const on = tab === chosen;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      byId(tab.getAttribute("aria-controls") ?? "").hidden = !on;
    }
    shown(chosen.id.replace("tab-", ""));
  };
  tabs.forEach((tab, number) => {
    tab.addEventListener("click", () => select(tab));
    tab.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
      const other = tabs[1 - number];
      select(other);
      other.focus();
    });
  });
}
