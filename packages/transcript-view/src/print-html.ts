import { safeLink } from "./safe-link.ts";
import { viewAttributes, type ViewAttributes, type ViewNode, viewTags } from "./view-tree.ts";

/** A text between elements can start an element or an entity, and nothing else. */
export function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

/** @returns the text for an attribute in double quotation marks */
export function escapeAttribute(text: string): string {
  return escapeHtml(text).replaceAll('"', "&quot;");
}

/** Prints a tree as HTML: the only way from the text of a transcript to an element. */
export function* printHtml(nodes: readonly ViewNode[]): Generator<string, void, void> {
  for (const node of nodes) {
    if (typeof node === "string") {
      yield escapeHtml(node);
      continue;
    }
    const { tag, attrs, children } = node;
    if (!viewTags.includes(tag)) throw new TypeError(`A tree of a transcript has no element ${String(tag)}.`);
    yield `<${tag}${printAttributes(attrs)}>`;
    // A parser drops a line feed at the start of a `pre`.
    if (tag === "pre" && children[0] !== undefined && String(children[0]).startsWith("\n")) yield "\n";
    if (tag === "img") continue;
    yield* printHtml(children);
    yield `</${tag}>`;
  }
}

function printAttributes(attrs: ViewAttributes): string {
  let text = "";
  for (const name of viewAttributes) {
    const value = attrs[name];
    if (value === undefined) continue;
    if (name === "href" && safeLink(value) === null)
      throw new TypeError("A link of a transcript is http, https or mailto.");
    if (name === "src" && !/^data:image\/(png|jpeg|gif|webp);base64,/.test(value))
      throw new TypeError("An image of a transcript is PNG, JPEG, GIF or WebP in the file itself.");
    text += ` ${name}="${escapeAttribute(value)}"`;
  }
  return text;
}
