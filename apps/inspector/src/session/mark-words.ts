/** Splits a search into the words that occur in texts: without quotation marks, and without the `*` behind a beginning. */
export function wordsOf(query: string): readonly string[] {
  return query
    .toLowerCase()
    .split(/[\s"*()]/)
    .filter((word) => word.length > 1)
    .slice(0, 16);
}

const mostMarks = 500;

/** Marks words in the texts on the screen. The elements stay as they are: the browser paints ranges. */
export function markWords(element: HTMLElement | null, query: string): void {
  if (!("highlights" in CSS)) return;
  const words = wordsOf(query);
  if (element === null || words.length === 0) {
    CSS.highlights.delete("find");
    return;
  }
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null && ranges.length < mostMarks; node = walker.nextNode())
    ranges.push(...rangesOf(node, words));
  CSS.highlights.set("find", new Highlight(...ranges));
}

function rangesOf(node: Node, words: readonly string[]): readonly Range[] {
  const text = (node.textContent ?? "").toLowerCase();
  const ranges: Range[] = [];
  for (const word of words)
    for (
      let at = text.indexOf(word);
      at !== -1 && ranges.length < mostMarks;
      at = text.indexOf(word, at + word.length)
    ) {
      const range = new Range();
      range.setStart(node, at);
      // Some letters have another length in lower case.
      range.setEnd(node, Math.min(at + word.length, node.textContent?.length ?? 0));
      ranges.push(range);
    }
  return ranges;
}
