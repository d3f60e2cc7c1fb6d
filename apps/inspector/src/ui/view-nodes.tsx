import { safeLink, viewTags, type ViewElement, type ViewNode } from "@throughline/transcript-view/internal";
import { type ComponentChildren, h, type VNode } from "preact";

const tags: ReadonlySet<string> = new Set(viewTags);

/** Turns a tree of a transcript into elements. The tags and attributes are those of two tables: a text names none. */
export function viewNodes(nodes: readonly ViewNode[]): ComponentChildren {
  return nodes.map((node) => (typeof node === "string" ? node : viewElement(node)));
}

function viewElement({ tag, attrs, children }: ViewElement): VNode {
  if (!tags.has(tag) || tag === "img") throw new TypeError(`A transcript on the page has no element ${String(tag)}.`);
  const { class: className, href, start } = attrs;
  if (tag === "a") return linkElement(href, children);
  return h(
    tag,
    { ...(className === undefined ? {} : { class: className }), ...(start === undefined ? {} : { start }) },
    viewNodes(children),
  );
}

function linkElement(href: string | undefined, children: readonly ViewNode[]): VNode {
  const link = href === undefined ? null : safeLink(href);
  if (link === null) return <span>{viewNodes(children)}</span>;
  return (
    <a href={link.href} rel="noopener noreferrer" target="_blank">
      {viewNodes(children)}
    </a>
  );
}
