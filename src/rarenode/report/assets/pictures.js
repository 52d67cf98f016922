// @ts-check
// A picture is embedded once; the other places where it is shown have its number, and take it from there.

function fillPictures() {
  for (const place of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-picture]"))) {
    const embedded = /** @type {HTMLImageElement} */ (byId(`picture-${place.dataset.picture}`));
    place.replaceWith(element("img", { class: "picture", alt: place.textContent, src: embedded.src }));
  }
}

fillPictures();
