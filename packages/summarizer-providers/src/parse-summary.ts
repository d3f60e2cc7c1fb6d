import { linearExpression } from "@throughline/core/internal";
import {
  emptySections,
  sectionNames,
  sectionTitles,
  writeSections,
  type SectionName,
  type SummarySections,
} from "./summary-sections.ts";

/** Holds a parsed summary of a model. */
export interface ParsedSummary {
  /** Holds the summary without the introductions, tags and fences that models put around it. */
  readonly text: string;
  /** Holds the items under each heading. Text before the first heading belongs to `state`. */
  readonly sections: SummarySections;
  /** States whether the text has at least one heading. */
  readonly isStructured: boolean;
}

const names: Readonly<Record<SectionName, RegExp>> = {
  topics: /^(?:topics?|requests?|goals?|what was asked|subject|user requests?|context)$/,
  decisions:
    /^(?:(?:key )?decisions?|constraints?|rules?|preferences?|decisions? and constraints?|constraints? and preferences?)$/,
  state:
    /^(?:(?:current )?(?:state|status)|progress|done|summary|findings|key facts?|what was done|files|commands|failures|commands and failures)$/,
  open: /^(?:open (?:items?|questions?|todos?|points?)|todos?|next steps?|pending(?: tasks?| items?)?|questions|remaining work)$/,
};

/**
 * Parses the answer of a summarizer leniently. Fences, tags, thinking and introductions around the summary are removed,
 * JSON becomes text, and common variants of the headings are recognized.
 */
export function parseSummary(answer: string): ParsedSummary {
  // Providers refuse half a surrogate pair, and the summary would repeat it in every later request.
  const plain = unwrapped(answer.toWellFormed());
  const fields = objectIn(plain);
  if (fields !== null) {
    const sections = fromFields(fields);
    const text = writeSections(sections);
    if (text !== "") return { text, sections, isStructured: true };
  }
  const { sections, isStructured } = readSections(plain);
  return { text: plain, sections, isStructured };
}

function unwrapped(answer: string): string {
  let text = withoutThinking(answer).trim();
  text = insideTag(text) || text;
  text = insideFence(text) || text;
  return withoutIntroduction(text).trim();
}

const closingTags: Readonly<Record<string, RegExp>> = {
  summary: /<\/summary>/i,
  answer: /<\/answer>/i,
  output: /<\/output>/i,
};

/** Returns the content of the first tag, up to its end or the end of the text. Empty without a tag. */
function insideTag(text: string): string {
  const opening = /<(summary|answer|output)>/i.exec(text);
  if (opening === null) return "";
  const inside = text.slice(opening.index + opening[0].length);
  const end = inside.search(closingTags[opening[1]?.toLowerCase() ?? ""] ?? /$/);
  return (end === -1 ? inside : inside.slice(0, end)).trim();
}

/** Returns the content of a fence that covers the text except for a first line. Empty without a fence. */
function insideFence(text: string): string {
  const at = text.indexOf("```");
  const before = text.slice(0, Math.max(0, at));
  const isAlone = before === "" || (before.endsWith("\n") && !before.trimEnd().includes("\n"));
  const opening = at === -1 || at > 300 || !isAlone ? null : /^```[a-z]*\n/i.exec(text.slice(at));
  return opening === null || !text.endsWith("```") ? "" : text.slice(at + opening[0].length, -"```".length).trim();
}

const thinkingTags = /<(\/?)(think|thinking|analysis|reasoning|scratchpad)>/gi;

/** Removes thinking in one pass, because a model that never closes a tag may open it thousands of times. */
function withoutThinking(answer: string): string {
  const tags = [...answer.matchAll(thinkingTags)];
  const nextClosing = new Map<string, number>();
  const closings = tags
    .map((tag, at) => ({ tag, at }))
    .toReversed()
    .map(({ tag: [, slash, name = ""], at }) => {
      if (slash === "/") nextClosing.set(name.toLowerCase(), at);
      return nextClosing.get(name.toLowerCase());
    })
    .toReversed();
  let text = "";
  let from = 0;
  for (const [at, { 1: slash, index }] of tags.entries()) {
    const closing = tags[closings[at] ?? -1];
    if (slash === "/" || index < from || closing === undefined) continue;
    text += answer.slice(from, index);
    from = closing.index + closing[0].length;
  }
  return text + answer.slice(from);
}

/** Matches a line such as "Here is the summary of the conversation:". */
const introduction = linearExpression(
  "^(?:(?:sure|okay|ok|certainly|of course)[,.!]? *)?(?:here(?:'s| is)|below is|this is)[^\\n]{0,120}(?:summary|update)[^\\n]{0,80}:[ \\t]*$",
  "i",
);

function withoutIntroduction(text: string): string {
  const end = text.indexOf("\n");
  return end !== -1 && end < 300 && introduction.test(text.slice(0, end)) ? text.slice(end) : text;
}

function readSections(text: string): { readonly sections: SummarySections; readonly isStructured: boolean } {
  const sections = emptySections();
  let current: SectionName = "state";
  let isStructured = false;
  for (const line of text.split("\n")) {
    const heading = headingOf(line);
    if (heading !== null) {
      current = heading.name;
      isStructured = true;
      if (heading.rest !== "") sections[current].push(heading.rest);
      continue;
    }
    addLine(sections[current], line);
  }
  return { sections, isStructured };
}

/** An indented line without a bullet continues the previous item. */
function addLine(items: string[], line: string): void {
  const item = line.replace(/^\s*(?:[-*•]|\d{1,2}[.)])\s+/, "").trim();
  if (item === "") return;
  const isNew = item !== line.trim() || items.length === 0 || !/^\s{2,}/.test(line);
  if (isNew) items.push(item);
  else items.push(`${items.pop() ?? ""}\n${item}`);
}

function headingOf(line: string): { readonly name: SectionName; readonly rest: string } | null {
  const colon = line.indexOf(":");
  const rest = colon === -1 ? "" : line.slice(colon + 1);
  const title = titleOf(colon === -1 ? line : line.slice(0, colon))
    ?.toLowerCase()
    .replaceAll(/ ?[&/,] ?/g, " and ")
    .trim();
  const name = title === undefined ? undefined : sectionNames.find((one) => names[one].test(title));
  return name === undefined ? null : { name, rest: rest.replace(/^(?:\*\*|__)/, "").trim() };
}

const longestTitleLine = 80;

/** Returns the words of a heading without marks and numbers, or null for another line. */
function titleOf(line: string): string | null {
  if (line.length > longestTitleLine || /^\s{4}/.test(line)) return null;
  const bare = line.trim().replace(/^(?:#{1,6}\s|\d{1,2}[.)]\s)/, "");
  const words = bare
    .trim()
    .replace(/^(?:\*\*|__)/, "")
    .replace(/(?:\*\*|__)$/, "")
    .trim();
  return words.length >= 3 && words.length <= 41 && /^[A-Za-z][A-Za-z &/,-]*$/.test(words) ? words : null;
}

function objectIn(text: string): Readonly<Record<string, unknown>> | null {
  const start = text.indexOf("{");
  const end = text.lastIndexOf("}");
  // A longer text around the object means that the text only mentions an object.
  if (start < 0 || end < start || start > 200 || text.length - end > 200) return null;
  try {
    const value: unknown = JSON.parse(text.slice(start, end + 1));
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function fromFields(fields: Readonly<Record<string, unknown>>): SummarySections {
  const sections = emptySections();
  const others: string[] = [];
  for (const [key, value] of Object.entries(fields)) {
    const title = key
      .replaceAll(/([a-z])([A-Z])/g, "$1 $2")
      .replaceAll(/[_-]+/g, " ")
      .toLowerCase()
      .trim();
    const name = sectionNames.find((one) => names[one].test(title) || sectionTitles[one].toLowerCase() === title);
    if (name !== undefined) sections[name].push(...textsOf(value));
    else others.push(...textsOf(value).map((text) => `${key}: ${text}`));
  }
  // Fields with other names are kept too. An object with only such names is not a summary.
  if (writeSections(sections) !== "") sections.state.push(...others);
  return sections;
}

function textsOf(value: unknown): readonly string[] {
  if (typeof value === "string") return value.trim() === "" ? [] : [value.toWellFormed().trim()];
  if (Array.isArray(value)) return value.flatMap(textsOf);
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).flatMap(([key, inner]) => textsOf(inner).map((text) => `${key}: ${text}`));
  }
  return value === null || value === undefined ? [] : [String(value)];
}
