// @ts-check
// On paper the map is the picture that was on the screen, in the colours of paper.

let printing = false;

/** Whether the page is on its way to paper. A browser says so by an event or by the kind of medium, not always by both. */
function isPrinting() {
  return printing || window.matchMedia("print").matches;
}

/** @param {() => void} repaint */
function listenToPrinting(repaint) {
  window.addEventListener("beforeprint", () => {
    printing = true;
    repaint();
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    repaint();
  });
  window.matchMedia("print").addEventListener("change", repaint);
}
