// @ts-check
// One frame of the map. Every node in the window is looked at once, and drawn if it is at least one pixel of the screen
// high. Thinner ones are gathered: each line of pixels becomes a strip that is split by the shares of what lies there.

/** @typedef {{from: number, to: number, edges: Float64Array}} View */

const LABEL_WIDTH = 30;
const PADDING = 5;

class IcicleDrawing {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {RunsReport} report
   */
  constructor(canvas, report) {
    this.canvas = canvas;
    this.report = report;
    this.pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.width = 0;
    this.height = 0;
    this.density = 1;
    this.sums = new Float32Array(0);
    /** @type {Map<string, string>} */
    this.cuts = new Map();
    this.family = "sans-serif";
    this.penFont = "";
    /** @type {CanvasPattern | string} */
    this.hatch = "transparent";
  }

  /**
   * @param {number} width
   * @param {number} height
   */
  resize(width, height) {
    this.width = width;
    this.height = height;
    this.density = Math.min(window.devicePixelRatio || 1, 3);
    this.canvas.width = Math.round(width * this.density);
    this.canvas.height = Math.round(height * this.density);
    this.canvas.style.height = `${height}px`;
    this.family = window.getComputedStyle(this.canvas).fontFamily;
    this.cuts.clear();
    this.penFont = ""; // a canvas forgets its pen when it is resized
  }

  /** @param {boolean} dark */
  prepareHatch(dark) {
    const tile = document.createElement("canvas");
    const side = Math.round(6 * this.density);
    tile.width = side;
    tile.height = side;
    const pen = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
    pen.strokeStyle = dark ? "rgb(255 255 255 / 16%)" : "rgb(20 40 60 / 17%)";
    pen.lineWidth = this.density;
    pen.beginPath();
    for (const shift of [-side, 0, side]) {
      pen.moveTo(shift, side);
      pen.lineTo(shift + side, 0);
    }
    pen.stroke();
    this.hatch = this.pen.createPattern(tile, "repeat") ?? "transparent";
    // The tile is made of pixels of the screen, and must not be enlarged with the rest.
    if (typeof this.hatch !== "string") this.hatch.setTransform(new DOMMatrix().scale(1 / this.density));
  }

  /**
   * @param {IcicleLayout} layout
   * @param {View} view
   * @param {Palette} palette
   */
  draw(layout, view, palette) {
    const { pen, density } = this;
    pen.setTransform(density, 0, 0, density, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    /** @type {number[][]} */
    const boxes = palette.fills.map(() => []);
    /** @type {number[]} */
    const labelled = [];
    this.#gather(layout, view, palette, boxes, labelled);
    this.#drawStrips(view, palette);
    boxes.forEach((list, number) => this.#drawBoxes(list, palette.fills[number]));
    this.#drawLabels(labelled, palette);
  }

  /**
   * @param {IcicleLayout} layout
   * @param {View} view
   * @param {Palette} palette
   * @param {number[][]} boxes for each fill left, top, width and height of each box, one after the other
   * @param {number[]} labelled node, left, top, width and height of each box that has room for a name
   */
  #gather(layout, view, palette, boxes, labelled) {
    const { report, height, density } = this;
    const { order, depth, end, size } = report;
    const { top, bottom } = layout;
    const { edges, from, to } = view;
    const { paint, group, scaleGroup, groups } = palette;
    const scale = height / (to - from);
    const lines = Math.ceil(height);
    const each = groups + 1; // for each strip the share of each group, and the sum of the steps on the scale
    const needed = (report.deepest + 1) * lines * each;
    if (this.sums.length < needed) this.sums = new Float32Array(needed);
    else this.sums.fill(0, 0, needed);
    const { sums } = this;
    const least = 1 / density;
    for (let place = 0; place < size; ) {
      const column = order[place];
      const upper = (top[column] - from) * scale;
      const lower = (bottom[column] - from) * scale;
      if (lower <= 0.01 || upper >= height - 0.01) {
        place = end[column];
        continue;
      }
      place++;
      const level = depth[column];
      const left = edges[level];
      const right = edges[level + 1];
      if (right - left < 0.5) continue;
      if (lower - upper < least) {
        const line = Math.min(lines - 1, Math.max(0, Math.floor((upper + lower) / 2)));
        const start = (level * lines + line) * each;
        const share = lower - upper;
        const kind = group[paint[column]];
        sums[start + kind] += share;
        if (kind === scaleGroup) sums[start + groups] += share * paint[column];
        continue;
      }
      const y = Math.max(0, Math.round(upper * density) / density);
      const tall = Math.min(height, Math.round(lower * density) / density) - y;
      const gap = tall > 4 ? 1 : tall > 2 ? 0.5 : 0; // hairlines between nodes that are high enough to spare them
      const x = Math.round(left * density) / density;
      const wide = Math.round(right * density) / density - x - (right - left > 8 ? 1 : 0);
      boxes[paint[column]].push(x, y, wide, tall - gap);
      if (tall >= LINE && wide >= LABEL_WIDTH) labelled.push(column, x, y, wide, tall - gap);
    }
  }

  /**
   * @param {View} view
   * @param {Palette} palette
   */
  #drawStrips(view, palette) {
    const { pen, sums, height } = this;
    const { groups, scaleGroup, fills } = palette;
    const fillOfGroup = Array.from({ length: groups }, (_, kind) => fills[palette.group.indexOf(kind)]?.css ?? "");
    const lines = Math.ceil(height);
    const each = groups + 1;
    for (let level = 0; level <= this.report.deepest; level++) {
      const left = view.edges[level];
      const width = view.edges[level + 1] - left - (view.edges[level + 1] - left > 8 ? 1 : 0);
      if (width < 0.5) continue;
      for (let line = 0; line < lines; line++) {
        const start = (level * lines + line) * each;
        let all = 0;
        for (let kind = 0; kind < groups; kind++) all += sums[start + kind];
        if (all === 0) continue;
        let x = left;
        for (let kind = 0; kind < groups; kind++) {
          const share = sums[start + kind];
          if (share === 0) continue;
          const part = (share / all) * width;
          pen.fillStyle = kind === scaleGroup ? fills[Math.round(sums[start + groups] / share)].css : fillOfGroup[kind];
          pen.fillRect(x, line, part, 1);
          x += part;
        }
      }
    }
  }

  /**
   * @param {number[]} list
   * @param {Fill} look
   */
  #drawBoxes(list, look) {
    if (list.length === 0) return;
    const { pen } = this;
    pen.fillStyle = look.css;
    for (let at = 0; at < list.length; at += 4) pen.fillRect(list[at], list[at + 1], list[at + 2], list[at + 3]);
    if (!look.hatched) return;
    pen.fillStyle = this.hatch;
    for (let at = 0; at < list.length; at += 4) pen.fillRect(list[at], list[at + 1], list[at + 2], list[at + 3]);
  }

  /**
   * @param {number[]} labelled
   * @param {Palette} palette
   */
  #drawLabels(labelled, palette) {
    const { pen, report } = this;
    pen.textBaseline = "middle";
    pen.direction = "ltr";
    for (let at = 0; at < labelled.length; at += 5) {
      const [column, x, y, width, height] = labelled.slice(at, at + 5);
      const room = width - 2 * PADDING;
      const twoLines = height >= 38 && width >= 60;
      pen.fillStyle = palette.fills[palette.paint[column]].ink;
      pen.fillText(this.#fitting(report.names[column], room, twoLines ? 600 : 400), x + PADDING, twoLines ? y + 14 : height < 30 ? y + height / 2 + 0.5 : y + 14);
      if (twoLines) pen.fillText(this.#fitting(palette.caption(column), room, 400), x + PADDING, y + 30);
    }
  }

  /**
   * As much of the text as fits; the pen is set to its weight.
   * @param {string} text
   * @param {number} width
   * @param {number} weight
   */
  #fitting(text, width, weight) {
    const font = `${weight} 12px ${this.family}`;
    if (this.penFont !== font) {
      this.pen.font = font; // costs more than the comparison
      this.penFont = font;
    }
    const key = `${weight} ${Math.floor(width)} ${text}`;
    const known = this.cuts.get(key);
    if (known !== undefined) return known;
    const { pen } = this;
    let shown = cut(text, Math.max(1, Math.ceil(width / 3)));
    let measured = pen.measureText(shown).width;
    for (let length = shown.length; measured > width && length > 1; ) {
      length = Math.max(1, Math.min(length - 1, Math.floor((length * width) / measured)));
      shown = cut(text, length);
      measured = pen.measureText(shown).width;
    }
    if (measured > width) shown = "";
    if (this.cuts.size > 20000) this.cuts.clear();
    this.cuts.set(key, shown);
    return shown;
  }
}
