// @ts-check
// A list of any length, of which only the lines in sight are elements. The elements are used again as lines scroll by.

class VirtualRows {
  /**
   * @param {HTMLElement} wall what scrolls
   * @param {HTMLElement} body as high as all lines together
   * @param {number} height of one line
   * @param {() => HTMLElement} make an empty line
   * @param {(line: HTMLElement, place: number) => void} fill
   */
  constructor(wall, body, height, make, fill) {
    this.wall = wall;
    this.body = body;
    this.height = height;
    this.make = make;
    this.fill = fill;
    this.count = 0;
    /** @type {HTMLElement[]} */
    this.lines = [];
    /** @type {number[]} */
    this.places = [];
    const later = oncePerFrame(() => this.#update());
    wall.addEventListener("scroll", later, { passive: true });
    new ResizeObserver(later).observe(wall);
  }

  /** @param {number} count */
  show(count) {
    this.count = count;
    this.body.style.height = `${count * this.height}px`;
    this.places.fill(-1);
    this.#update();
  }

  /**
   * Scrolls as little as brings a line into sight.
   * @param {number} place
   * @param {number} covered height that a heading covers
   */
  reveal(place, covered) {
    const top = place * this.height;
    const room = this.wall.clientHeight - covered;
    if (top < this.wall.scrollTop) this.wall.scrollTop = top;
    else if (top + this.height > this.wall.scrollTop + room) this.wall.scrollTop = top + this.height - room;
    this.#update();
  }

  #update() {
    const needed = Math.min(this.count, Math.ceil(this.wall.clientHeight / this.height) + 6);
    const first = Math.max(0, Math.min(this.count - needed, Math.floor(this.wall.scrollTop / this.height) - 3));
    while (this.lines.length < needed) {
      const line = this.make();
      this.lines.push(line);
      this.places.push(-1);
      this.body.append(line);
    }
    // A line keeps its element while it is in sight: its number modulo the number of elements.
    const size = this.lines.length;
    const used = new Uint8Array(size);
    for (let place = first; place < first + needed; place++) {
      const at = place % size;
      used[at] = 1;
      if (this.places[at] === place) continue;
      this.places[at] = place;
      const line = this.lines[at];
      line.hidden = false;
      line.style.transform = `translateY(${place * this.height}px)`;
      this.fill(line, place);
    }
    this.lines.forEach((line, at) => {
      if (used[at]) return;
      line.hidden = true;
      this.places[at] = -1;
    });
  }
}
