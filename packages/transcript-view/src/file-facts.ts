import type { Chapter } from "./chapters.ts";
import type { TranscriptLevel } from "./transcript-row.ts";

/** Counts what one rule of the secret scan replaced. */
export interface ReplacedSecrets {
  /** Names the kind of the secret, as it stands in the place of one: `GitHub token`. */
  readonly what: string;
  /** Counts the records that hold one, and each place of a home directory. */
  readonly count: number;
}

/** A chapter, and the file that holds it. */
export interface ListedChapter extends Chapter {
  /** Numbers the files from 1. */
  readonly part: number;
}

/** States what the top of a file says about its session. Each text is free of secrets. */
export interface FileFacts {
  readonly name: string;
  /** Names the program that wrote the session; null for a session of our own. */
  readonly program: string | null;
  readonly folder: string | null;
  readonly key: string;
  readonly sessionId: string;
  readonly model: string | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly exportedAtMs: number;
  /** Counts the messages and records of the session. */
  readonly messages: number;
  readonly records: number;
  readonly level: TranscriptLevel;
  /** Lists what the secret scan replaced; null when it was off. */
  readonly replaced: readonly ReplacedSecrets[] | null;
  /** Counts the sub-agents under their calls, and those whose call is not known; null at a level without calls. */
  readonly agents: { readonly placed: number; readonly others: number } | null;
  readonly chapters: readonly ListedChapter[];
  readonly part: number;
  /** Holds the names of all files, in order; one name for a session in one file. */
  readonly fileNames: readonly string[];
}

const levelTexts: Readonly<Record<TranscriptLevel, string>> = {
  full: "everything",
  compact: "results to 20 lines",
  words: "only what people and models said",
};

/** Lists the facts below the title of a file. */
export function factLines(facts: FileFacts): readonly (readonly [name: string, value: string])[] {
  const { program, folder, model, messages, records, level, key, sessionId } = facts;
  return [
    ["Program", program ?? "Throughline"],
    ...(folder === null ? [] : [["Folder", folder] as const]),
    ...(model === null ? [] : [["Model", model] as const]),
    ["Time", `${minuteText(facts.createdAtMs)} to ${minuteText(facts.updatedAtMs)} UTC`],
    ["Size", `${counted(messages, "message")}, ${counted(records, "record")}`],
    ["Shown", levelTexts[level]],
    ...agentLine(facts),
    ["Session", key.includes(sessionId) ? key : `${key} · ${sessionId}`],
  ];
}

function agentLine({ agents }: FileFacts): readonly (readonly [name: string, value: string])[] {
  if (agents === null || agents.placed + agents.others === 0) return [];
  const others = agents.others === 0 ? [] : [`${agents.others} without a known call left out`];
  const placed =
    agents.placed === 0 ? [] : [`${agents.placed} under ${agents.placed === 1 ? "its call" : "their calls"}`];
  return [["Sub-agents", [...placed, ...others].join(", ")]];
}

/** States what the secret scan did, in one sentence. It is no promise. */
export function scanText({ replaced }: Pick<FileFacts, "replaced">): string {
  if (replaced === null) return "The secret scan was off: this file may hold keys and passwords.";
  const count = replaced.reduce((sum, each) => sum + each.count, 0);
  const known = "The scan knows certain shapes only.";
  if (count === 0) return `The secret scan replaced nothing. ${known}`;
  const kinds = replaced.map((each) => `${each.count.toLocaleString("en-US")} × ${each.what}`).join(", ");
  return `The secret scan replaced ${counted(count, "text")}: ${kinds}. ${known}`;
}

export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}

/** Returns the UTC time to the minute; empty for a time outside of the calendar. */
export function minuteText(ms: number | null): string {
  return ms === null || !(Math.abs(ms) < 8.64e15) ? "" : new Date(ms).toISOString().slice(0, 16).replace("T", " ");
}
