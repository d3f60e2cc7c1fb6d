import { endOfValue } from "@throughline/core/internal";

/** What a checkpoint says. */
export interface CheckpointContent {
  /** The conversation so far in prose; never empty. */
  readonly summary: string;
  /** The topics as short phrases; empty when the reply named none. */
  readonly topics: readonly string[];
  /** What was decided, and why; empty when the reply named nothing. */
  readonly keyDecisions: readonly string[];
  /** What is still to be done or answered; empty when the reply named nothing. */
  readonly openQuestions: readonly string[];
}

export const checkpointSystem =
  "You record where a conversation stands, for the person who continues it. You answer with one JSON object and nothing else.";

/**
 * Asks for the parts of a checkpoint. The conversation is text in tags: the model describes it and does not continue
 * it.
 */
export function checkpointPrompt(text: string, previousSummary: string | null): string {
  const before = previousSummary === null ? "" : `<before>\n${previousSummary}\n</before>\n\n`;
  const builds =
    previousSummary === null
      ? ""
      : " What stands in <before> happened earlier: carry what still matters into your summary.";
  return `${before}<conversation>\n${text}\n</conversation>

Read the conversation above.${builds} Do not answer it. Write a JSON object with these fields:
{"summary": "two to four paragraphs: what was asked, what was done, where it stands; names, paths and numbers as they are",
 "topics": ["three to seven short phrases"],
 "keyDecisions": ["what was decided, and why; [] when nothing was"],
 "openQuestions": ["what is still to be done or answered; [] when nothing is"]}`;
}

const longestFallback = 4000;
/** A checkpoint has a few thousand characters; a longer reply is not a checkpoint. */
const longestReply = 200_000;

/**
 * Reads a reply: a JSON object, in a fence or among other words, under the names that models give the fields; a text
 * without one is taken as the summary. Null when there is no summary in it.
 */
export function parseCheckpoint(reply: string): CheckpointContent | null {
  if (reply.length > longestReply) return null;
  const fields = findObject(reply);
  if (fields === null) {
    const broken = /"summary"\s*:\s*"((?:[^"\\]|\\.)+)/.exec(reply)?.[1];
    const text = broken === undefined ? reply.trim() : unescaped(broken);
    if (broken === undefined && /^[[{]/.test(text)) return null;
    return text === "" ? null : content({ summary: text.slice(0, longestFallback).toWellFormed() });
  }
  return content(fields);
}

function content(fields: Readonly<Record<string, unknown>>): CheckpointContent | null {
  const summary = textOf(fields["summary"] ?? fields["Summary"]);
  if (summary === "") return null;
  return {
    summary,
    topics: listOf(fields["topics"]),
    keyDecisions: listOf(fields["keyDecisions"] ?? fields["key_decisions"] ?? fields["decisions"]),
    openQuestions: listOf(fields["openQuestions"] ?? fields["open_questions"] ?? fields["questions"]),
  };
}

/** A reply that opens more of them is no answer. */
const mostObjects = 50;

/** The first object in a text that parses and has a summary. */
function findObject(reply: string): Readonly<Record<string, unknown>> | null {
  const last = reply.lastIndexOf("}") + 1;
  let start = reply.indexOf("{");
  for (let tried = 0; start >= 0 && tried < mostObjects; tried++) {
    for (const end of new Set([endOfValue(reply, start) ?? last, last])) {
      const value = end > start ? parsed(reply.slice(start, end)) : null;
      if (value !== null && ("summary" in value || "Summary" in value)) return value;
    }
    start = reply.indexOf("{", start + 1);
  }
  return null;
}

function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function unescaped(text: string): string {
  const value = parsed(`{"summary":"${text}"}`);
  return textOf(value?.["summary"] ?? text);
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value.toWellFormed().trim();
  return Array.isArray(value) ? value.map(textOf).filter(Boolean).join("\n\n") : "";
}

function listOf(value: unknown): readonly string[] {
  if (typeof value === "string") {
    return value
      .split("\n")
      .map((line) => line.replace(/^\s*[-*\d.]+\s*/, "").trim())
      .filter((line) => line !== "");
  }
  if (!Array.isArray(value)) return [];
  return value
    .map((item) => (typeof item === "string" ? textOf(item) : item === null ? "" : JSON.stringify(item)))
    .filter((item) => item !== "");
}
