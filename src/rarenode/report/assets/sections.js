// @ts-check
// The links to the sections: those that were filled with nothing are left out, and the one in sight is marked.

/** @param {RunsReport} report */
function hideEmptySections(report) {
  for (const part of document.querySelectorAll("section > .filled")) {
    const section = /** @type {HTMLElement} */ (part.parentElement);
    const needed = section.id === "comparison" ? report.runs.length > 1 : part.children.length > 0 || part.textContent?.trim();
    section.hidden = !needed;
  }
  for (const link of sectionLinks()) link.hidden = sectionOf(link).hidden;
}

function sectionLinks() {
  return /** @type {HTMLElement[]} */ ([...byId("sections").querySelectorAll("a")]);
}

/** @param {HTMLElement} link */
function sectionOf(link) {
  return byId((link.getAttribute("href") ?? "").slice(1));
}

/** Marks the link of the last section that begins above the middle of the window. */
function markSection() {
  const links = sectionLinks().filter((link) => !link.hidden);
  const begun = links.filter((link) => sectionOf(link).getBoundingClientRect().top < window.innerHeight / 2);
  const present = begun[begun.length - 1] ?? links[0];
  for (const link of links) {
    if (link !== present) link.removeAttribute("aria-current");
    else if (!link.hasAttribute("aria-current")) {
      link.setAttribute("aria-current", "true");
      const list = byId("sections");
      list.scrollLeft = link.offsetLeft - list.offsetLeft - (list.clientWidth - link.offsetWidth) / 2;
    }
  }
}

function followSections() {
  window.addEventListener("scroll", oncePerFrame(markSection), { passive: true });
  markSection();
}

/** What is larger than its frame scrolls; with a focus it does so by keys, too. */
function letFramesScroll() {
  for (const frame of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".scrolls, #comparison .chart"))) {
    if (frame.scrollWidth > frame.clientWidth || frame.scrollHeight > frame.clientHeight) frame.tabIndex = 0;
  }
}
