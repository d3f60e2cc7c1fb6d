import { endOfValue } from "@throughline/core/internal";

/** Holds the parts of a checkpoint. */
export interface CheckpointContent {
  /** Summarizes the conversation in prose; never empty. */
  readonly summary: string;
  /** Lists the topics as short phrases; empty when the reply names none. */
  readonly topics: readonly string[];
  /** Lists the decisions with their reasons; empty when the reply names none. */
  readonly keyDecisions: readonly string[];
  /** Lists the open tasks and questions; empty when the reply names none. */
  readonly openQuestions: readonly string[];
}

export const checkpointSystem =
  "You record where a conversation stands, for the person who continues it. You answer with one JSON object and nothing else.";

/**
 * Builds the prompt for a checkpoint. Tags around the conversation make the model describe the conversation instead of
 * continuing it.
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
/** A checkpoint has a few thousand characters, so a longer reply cannot be one. */
const longestReply = 200_000;

/**
 * Parses a reply. The JSON object may be in a code fence or inside other text, and its fields may have the names that
 * models use. A text without an object becomes the summary. Null when the reply has no summary.
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

/** Limits the parse attempts, because a reply with more objects is not a checkpoint. */
const mostObjects = 50;

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
