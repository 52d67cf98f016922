// @ts-check
// A table as a CSV file (RFC 4180), handed to the reader as a download.

/** @param {string} text */
function quoted(text) {
  return /[",\r\n]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param {string[][]} lines */
function csvText(lines) {
  return lines.map((line) => `${line.map(quoted).join(",")}\r\n`).join("");
}

/**
 * @param {string} name of the file
 * @param {string} text
 */
function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  window.setTimeout(() => URL.revokeObjectURL(address), 10000);
}
