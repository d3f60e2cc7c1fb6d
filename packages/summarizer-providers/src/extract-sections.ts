import { createWorkSlices } from "@throughline/core/internal";
import { emptySections, sectionNames, type SummarySections } from "./summary-sections.ts";
import { headAndTail, isAssistant, isCall, isFailedResult, isUser, type Segment } from "./transcript.ts";

/**
 * Limits the characters of a user request, so that old requests do not fill the summary. The newest request keeps more.
 */
const requestChars = 240;
const newestRequestChars = 800;
const lastWordsChars = 600;

/**
 * Extracts sections from a conversation by rules, without a model. The newest items come last. The work runs in slices.
 */
export async function extractSections(segments: readonly Segment[]): Promise<SummarySections> {
  const sections = emptySections();
  const work = new Work();
  const slices = createWorkSlices();
  for (const segment of segments) {
    const pause = slices.next();
    if (pause !== undefined) await pause;
    sections.decisions.push(...decisionsIn(segment));
    work.take(segment);
  }
  const requests = segments.filter((segment) => isUser(segment) && segment.text.trim() !== "");
  const newest = requests.at(-1);
  for (const request of requests) {
    sections.topics.push(oneLine(request.text, request === newest ? newestRequestChars : requestChars));
  }
  sections.state.push(...work.items(), ...work.identifiers(), ...lastWordsIn(segments));
  sections.open.push(...openIn(segments, newest));
  // A text without speakers yields no items, so its beginning and end are taken.
  const isEmpty = sectionNames.every((name) => sections[name].length === 0);
  const whole = isEmpty ? oneLine(segments.map(({ text }) => text).join(" "), lastWordsChars) : "";
  if (whole !== "") sections.state.push(whole);
  return sections;
}

const decision =
  /\b(?:decided|agreed|we(?:'ll| will)|let's|going with|go with|chose|chosen|instead of|settled on|rejected|ruled out|must(?: not)?|never|always|don't|do not|should(?: not|n't)|only use|prefer)\b/i;

const settled = /\b(?:decided|agreed|going with|chose|chosen|settled on|rejected|ruled out)\b/i;

/** Returns the sentences that state a decision. Sentences of the assistant count only when they mention a decision. */
function decisionsIn(segment: Segment): readonly string[] {
  const pattern = isUser(segment) ? decision : isAssistant(segment) ? settled : null;
  if (pattern === null) return [];
  const speaker = isUser(segment) ? "User" : "Assistant";
  return sentences(segment.text)
    .filter((sentence) => pattern.test(sentence) && !sentence.endsWith("?"))
    .map((sentence) => `${speaker}: ${sentence}`);
}

interface Call {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
}

const pathNames = ["path", "file_path", "filePath", "filename", "file", "notebook_path"];
const commandNames = ["command", "cmd", "script"];
const changes = /write|edit|create|patch|replace|delete|remove|move|rename|append|update|insert/i;

class Work {
  readonly #changed = new Set<string>();
  readonly #read = new Set<string>();
  readonly #commands = new Set<string>();
  readonly #failures = new Set<string>();
  readonly #identifiers: string[] = [];

  take(segment: Segment): void {
    const call = isCall(segment) ? callOf(segment.text) : null;
    if (call !== null) {
      for (const path of textsAt(call, pathNames)) (changes.test(call.tool) ? this.#changed : this.#read).add(path);
      for (const command of textsAt(call, commandNames)) this.#commands.add(oneLine(command, 160));
    }
    if (isFailedResult(segment)) this.#failures.add(`Failed: ${oneLine(segment.text, 200)}`);
    if (isUser(segment) || isAssistant(segment)) this.#identifiers.push(...identifiersOf(segment.text));
  }

  items(): readonly string[] {
    const unchanged = [...this.#read].filter((path) => !this.#changed.has(path));
    return [
      ...unchanged.map((path) => `Read: ${path}`),
      ...[...this.#changed].map((path) => `Changed: ${path}`),
      ...[...this.#commands].map((command) => `Ran: ${command}`),
      ...this.#failures,
    ];
  }

  /** Keeps only the newest identifiers, so that the section stays short. */
  identifiers(): readonly string[] {
    const newest = [...new Set(this.#identifiers.toReversed())].slice(0, mostIdentifiers).toReversed();
    return newest.map((identifier) => `Identifier: ${identifier}`);
  }
}

function callOf(text: string): Call | null {
  const match = /^("(?:[^"\\]|\\.)*"|\S+) (\{[\s\S]*\})$/.exec(text.trim());
  if (match === null) return null;
  try {
    const args: unknown = JSON.parse(match[2] ?? "");
    return typeof args === "object" && args !== null ? { tool: match[1] ?? "", args: args as Call["args"] } : null;
  } catch (error) {
    // The arguments were cut in the middle, so they are not reliable.
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function textsAt({ args }: Call, names: readonly string[]): readonly string[] {
  const found = names.map((name) => args[name]);
  return found.filter((value): value is string => typeof value === "string" && value !== "" && value.length <= 1000);
}

const identifiers: readonly RegExp[] = [
  /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g,
  /https?:\/\/[^\s"'`<>)\]}]+[\w/]/g,
  /\b[0-9a-f]{7,40}\b/g,
  /(?<![\w&])#\d{1,6}\b/g,
  /\b[A-Z][A-Z0-9]+-\d{1,6}\b/g,
];
const mostIdentifiers = 12;

/** Returns identifiers in text order. A match inside an earlier match is dropped, for example a hash in a URL. */
function identifiersOf(text: string): readonly string[] {
  const matches = identifiers.flatMap((pattern) => [...text.matchAll(pattern)]);
  const found: string[] = [];
  let end = 0;
  for (const { 0: match, index } of matches.toSorted((one, other) => one.index - other.index)) {
    if (index < end || isPlainWord(match)) continue;
    found.push(match);
    end = index + match.length;
  }
  return found;
}

/**
 * A match of letters only is a word and one of digits only is a number, so neither is an identifier. A commit hash has
 * both.
 */
function isPlainWord(match: string): boolean {
  return /^(?:[a-f]+|\d+)$/.test(match);
}

function lastWordsIn(segments: readonly Segment[]): readonly string[] {
  const last = segments.findLast((segment) => isAssistant(segment) && segment.text.trim() !== "");
  return last === undefined ? [] : [`The assistant said last: ${oneLine(last.text, lastWordsChars)}`];
}

const pending = /\b(?:todo|next step|still (?:to|need|have)|remaining|not yet|left to do|follow[- ]up|waiting for)\b/i;

function openIn(segments: readonly Segment[], newest: Segment | undefined): readonly string[] {
  const lastAnswer = segments.findLastIndex((segment) => isAssistant(segment) && segment.text.trim() !== "");
  const isUnanswered = newest !== undefined && segments.lastIndexOf(newest) > lastAnswer;
  const last = segments[lastAnswer];
  const said = last === undefined ? [] : sentences(last.text);
  return [
    ...said.filter((sentence) => sentence.endsWith("?")).map((sentence) => `The assistant asked: ${sentence}`),
    ...said.filter((sentence) => pending.test(sentence) && !sentence.endsWith("?")),
    ...(isUnanswered ? [`Not answered yet: ${oneLine(newest.text, requestChars)}`] : []),
  ];
}

function sentences(text: string): readonly string[] {
  return text
    .replaceAll(/```[\s\S]*?(?:```|$)/g, "\n")
    .split(/(?<=[.!?])\s+|\n+/)
    .map((sentence) => sentence.replace(/^\s*(?:[-*•]|\d{1,2}[.)])\s+/, "").trim())
    .filter((sentence) => sentence.length >= 8 && sentence.length <= 300);
}

function oneLine(text: string, mostChars: number): string {
  return headAndTail(text.trim(), mostChars).replaceAll(/\s+/g, " ").trim();
}
