/**
 * Returns the contents of each element of this name, in order. Answers of S3 nest no element in one of the same name, and
 * keep what matters in elements, so a search for the tags is enough.
 */
export function elementsOf(xml: string, name: string): readonly string[] {
  const [open, close] = [`<${name}>`, `</${name}>`];
  const found: string[] = [];
  for (let at = xml.indexOf(open); at >= 0;) {
    const end = xml.indexOf(close, at);
    if (end < 0) break;
    found.push(xml.slice(at + open.length, end));
    at = xml.indexOf(open, end);
  }
  return found;
}

/** Returns the text of the first element of this name, or "" without one. */
export function textOf(xml: string, name: string): string {
  const [text = ""] = elementsOf(xml, name);
  return text
    .replaceAll("&quot;", '"')
    .replaceAll("&#34;", '"')
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
}

/** Returns a text as it stands between tags. */
export function xmlText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
