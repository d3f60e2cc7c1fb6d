/** A fenced block of a Markdown file. */
export interface Fence {
  /** The line of its first mark, from 1. */
  readonly line: number;
  readonly language: string;
  /** What follows the language on the opening line. */
  readonly info: string;
  readonly text: string;
}

/** A link target and the line it stands on. */
export interface Link {
  readonly line: number;
  readonly target: string;
}

/** The parts of a Markdown file that are checked. */
export interface MarkdownParts {
  readonly fences: readonly Fence[];
  readonly links: readonly Link[];
  /** Anchors of the headings, as GitHub makes them. */
  readonly anchors: ReadonlySet<string>;
}

interface OpenFence {
  readonly mark: string;
  readonly line: number;
  readonly language: string;
  readonly info: string;
  readonly lines: string[];
}

const linkPattern = /\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g;
const definitionPattern = /^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)/;

/** The anchor GitHub makes of a heading: lower case, no punctuation, dashes for spaces. */
export function headingAnchor(heading: string): string {
  const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1");
  return plain
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(/\s/g, "-");
}

function addAnchor(anchors: Set<string>, heading: string): void {
  const anchor = headingAnchor(heading);
  let unique = anchor;
  for (let repeat = 1; anchors.has(unique); repeat += 1) unique = `${anchor}-${repeat}`;
  anchors.add(unique);
}

function openFence(textLine: string, line: number): OpenFence | null {
  const match = /^\s*(`{3,}|~{3,})\s*(\S*)\s*(.*)$/.exec(textLine);
  if (!match) return null;
  const [, mark = "", language = "", info = ""] = match;
  return { mark, line, language, info: info.trim(), lines: [] };
}

/** Reads fences, links and headings. Links inside fences and code spans do not count. */
export function readMarkdown(text: string): MarkdownParts {
  const fences: Fence[] = [];
  const links: Link[] = [];
  const anchors = new Set<string>();
  let open: OpenFence | null = null;
  for (const [index, textLine] of text.split("\n").entries()) {
    const line = index + 1;
    if (open) {
      if (textLine.trim().startsWith(open.mark) && textLine.trim().replaceAll(open.mark[0] ?? "", "") === "") {
        fences.push({ line: open.line, language: open.language, info: open.info, text: open.lines.join("\n") });
        open = null;
      } else open.lines.push(textLine);
      continue;
    }
    open = openFence(textLine, line);
    if (open) continue;
    const heading = /^#{1,6}\s+(.*?)\s*#*$/.exec(textLine);
    if (heading) addAnchor(anchors, heading[1] ?? "");
    const withoutCode = textLine.replaceAll(/`[^`]*`/g, "");
    for (const match of withoutCode.matchAll(linkPattern)) links.push({ line, target: match[1] ?? "" });
    const definition = definitionPattern.exec(withoutCode);
    if (definition) links.push({ line, target: definition[1] ?? "" });
  }
  return { fences, links, anchors };
}
