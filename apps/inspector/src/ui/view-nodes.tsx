import { safeLink, viewTags, type ViewElement, type ViewNode } from "@throughline/transcript-view/internal";
import { type ComponentChildren, h, type VNode } from "preact";
import { CodeBlock, CodeLanguage } from "../code/code-block.tsx";
import { CopyButton } from "./copy-button.tsx";

const tags: ReadonlySet<string> = new Set(viewTags);

/** Turns a tree of a transcript into elements. The tags and attributes are those of two tables: a text names none. */
export function viewNodes(nodes: readonly ViewNode[]): ComponentChildren {
  return nodes.map((node) => (typeof node === "string" ? node : viewElement(node)));
}

function viewElement(node: ViewElement): VNode {
  const { tag, attrs, children } = node;
  if (!tags.has(tag) || tag === "img") throw new TypeError(`A transcript on the page has no element ${String(tag)}.`);
  const { class: className, href, start } = attrs;
  if (tag === "a") return linkElement(href, children);
  if (tag === "pre" && className !== "t")
    return (
      <CodeBlock className={className} of={node}>
        {viewNodes(children)}
      </CodeBlock>
    );
  const language = tag === "div" ? languageOf(children) : null;
  if (language !== null) return fencedCode(language, children);
  return h(
    tag,
    { ...(className === undefined ? {} : { class: className }), ...(start === undefined ? {} : { start }) },
    viewNodes(children),
  );
}

function fencedCode(language: string, children: readonly ViewNode[]): VNode {
  const text = textOf(children.slice(1)).replace(/\n$/, "");
  return (
    <div class="fenced">
      {/* A sign stands for an invisible character, and a copy of the sign would be another text. */}
      {/[\u2400-\u241f\u2421]|⟨U\+/u.test(text) ? null : <CopyButton text={text} label="Copy the code" />}
      <CodeLanguage.Provider value={{ code: language, diff: language }}>{viewNodes(children)}</CodeLanguage.Provider>
    </div>
  );
}

function textOf(nodes: readonly ViewNode[]): string {
  return nodes.map((node) => (typeof node === "string" ? node : textOf(node.children))).join("");
}

/** Code with a name of its language is a box of both. */
function languageOf([label, code]: readonly ViewNode[]): string | null {
  if (typeof label !== "object" || typeof code !== "object" || label.attrs.class !== "lang") return null;
  const [name] = label.children;
  return typeof name === "string" ? name : null;
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
