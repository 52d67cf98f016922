// @ts-check
// A table that is wider than its frame: on which side there is more, how much of it, and a button that leads there.

/**
 * @param {HTMLElement} wall what scrolls; the frame around it draws the shade
 * @param {HTMLElement[]} heads of the columns; the first one stays in sight
 */
function tellOfMoreColumns(wall, heads) {
  const frame = byId("table-frame");
  const button = byId("more-columns");
  const isMoreAfter = () => wall.scrollLeft < wall.scrollWidth - wall.clientWidth - 1;
  /** The columns that end beyond the right edge. */
  const cutOff = () => {
    const edge = wall.getBoundingClientRect().left + wall.clientLeft + wall.clientWidth;
    return heads.filter((head) => head.getBoundingClientRect().right > edge + 1);
  };
  const update = () => {
    frame.classList.toggle("more-before", wall.scrollLeft > 1);
    frame.classList.toggle("more-after", isMoreAfter());
    // The shade does not fall on the scroll bars.
    frame.style.setProperty("--bar-beside", `${wall.offsetWidth - wall.clientWidth - 2 * wall.clientLeft}px`);
    frame.style.setProperty("--bar-below", `${wall.offsetHeight - wall.clientHeight - 2 * wall.clientTop}px`);
    button.hidden = wall.scrollWidth <= wall.clientWidth + 1;
    button.textContent = isMoreAfter() ? `${counted(cutOff().length, "more column")} →` : "← First columns";
  };
  button.addEventListener("click", () => {
    wall.scrollTo({ left: isMoreAfter() ? next() : 0, behavior: motionReduced() ? "auto" : "smooth" });
  });
  /** Where the first column that is cut off comes next to the names; if it is there and still too wide, what follows of it. */
  const next = () => {
    const names = heads[0].offsetWidth;
    const beside = (cutOff()[0] ?? heads[0]).offsetLeft - names;
    return beside > wall.scrollLeft + 1 ? beside : wall.scrollLeft + wall.clientWidth - names;
  };
  const later = oncePerFrame(update);
  wall.addEventListener("scroll", later, { passive: true });
  new ResizeObserver(later).observe(wall);
}
