// @ts-check
// Light, dark, or as the system has it.

const THEME_KEY = "rarenode-theme";
const THEMES = ["auto", "light", "dark"];

/** Whether the page is dark at present; paper never is. */
function isDark() {
  if (isPrinting()) return false;
  const chosen = document.documentElement.dataset.theme;
  return chosen === "dark" || (chosen !== "light" && window.matchMedia("(prefers-color-scheme: dark)").matches);
}

/** A browser may forbid a page from disk to keep anything. */
function keptTheme() {
  try {
    const kept = window.localStorage.getItem(THEME_KEY) ?? "";
    return THEMES.includes(kept) ? kept : "auto";
  } catch {
    return "auto";
  }
}

/** @param {string} theme */
function keepTheme(theme) {
  try {
    window.localStorage.setItem(THEME_KEY, theme);
  } catch {
    // not kept
  }
}

/** @param {() => void} changed */
function listenToTheme(changed) {
  const buttons = /** @type {HTMLElement[]} */ ([...byId("theme").querySelectorAll("button")]);
  const apply = (/** @type {string} */ theme) => {
    document.documentElement.dataset.theme = theme;
    for (const button of buttons) {
      const on = button.dataset.theme === theme;
      button.setAttribute("aria-checked", String(on));
      button.tabIndex = on ? 0 : -1;
    }
  };
  apply(keptTheme());
  const select = (/** @type {HTMLElement} */ button) => {
    apply(button.dataset.theme ?? "auto");
    keepTheme(button.dataset.theme ?? "auto");
    changed();
  };
  buttons.forEach((button, number) => {
    button.addEventListener("click", () => select(button));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: 2, ArrowUp: 2 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = buttons[(number + step) % buttons.length];
      select(next);
      next.focus();
    });
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}
