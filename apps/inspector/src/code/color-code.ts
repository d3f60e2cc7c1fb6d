import { codeTokens, type TokenKind } from "./code-tokens.ts";

const kinds: readonly TokenKind[] = ["comment", "string", "number", "keyword"];

/** Ranges of one kind have one color. They are painted by the browser: the elements and their texts stay as they are. */
function highlightOf(kind: TokenKind): Highlight {
  const name = `code-${kind}`;
  const known = CSS.highlights.get(name);
  if (known !== undefined) return known;
  const made = new Highlight();
  CSS.highlights.set(name, made);
  return made;
}

/** More ranges than this take a browser longer to paint than a reader looks at them. */
const mostRanges = 4000;

/** Colors the code in an element. Returns a function that takes the colors away again. */
export function colorCode(element: HTMLElement, language: string): () => void {
  if (!("highlights" in CSS)) return () => {};
  const isDiff = element.classList.contains("diff");
  const added: (readonly [TokenKind, StaticRange])[] = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null && added.length < mostRanges; node = walker.nextNode()) {
    // Lines in which a diff describes itself are no code.
    if (node.parentElement?.classList.contains("at") === true) continue;
    const text = node.textContent ?? "";
    // The sign of each line is no operator.
    const code = isDiff ? text.replaceAll(/^[-+]/gm, " ") : text;
    for (const { kind, from, to } of codeTokens(code, language).slice(0, mostRanges - added.length)) {
      const place = { startContainer: node, startOffset: from, endContainer: node, endOffset: to };
      added.push([kind, new StaticRange(place)]);
    }
  }
  for (const [kind, range] of added) highlightOf(kind).add(range);
  return () => {
    for (const kind of kinds) {
      const highlight = highlightOf(kind);
      for (const [each, range] of added) if (each === kind) highlight.delete(range);
    }
  };
}
