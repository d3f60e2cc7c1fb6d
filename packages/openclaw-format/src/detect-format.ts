import type { RecordSource } from "@throughline/core/internal";
import { wrappedTypes, isFields, type Fields } from "@throughline/core/internal";
import { isFlatRecord } from "./flat-record.ts";
import { detachEnvelope } from "./line-envelope.ts";
import { defaultMaxLineBytes } from "./line-splitter.ts";
import { maxRecordDepth, parseLine } from "./parse-line.ts";

/**
 * Names a transcript format. `jsonl` is Throughline's format. pi and OpenClaw write the same lines, so `openclaw` means
 * version 4 only, which OpenClaw alone writes.
 */
export type TranscriptFormat = "openclaw" | "pi" | "claw0" | "jsonl" | "unknown";

/** Returns the format of a transcript. The first line that can be read decides. */
export function detectLineFormat(lines: readonly RecordSource[]): TranscriptFormat {
  for (const line of lines) {
    const detached = typeof line === "string" ? detachEnvelope(line) : null;
    if (detached?.envelope != null) return "jsonl";
    const { value } = parseLine(line, line.length, { maxLineBytes: defaultMaxLineBytes, maxDepth: maxRecordDepth });
    if (value !== null) return formatOf(value);
  }
  return "unknown";
}

function formatOf(value: Fields): TranscriptFormat {
  if (value["type"] === "session") return formatOfHeader(value);
  if (isFlatRecord(value)) return "claw0";
  if (!wrappedTypes.has(value["type"])) return "unknown";
  // Other programs use the same type names for lines of another shape. Their messages have no role inside.
  const isMessage = value["type"] === "message";
  const message = value["message"];
  return isMessage && !(isFields(message) && typeof message["role"] === "string") ? "unknown" : "pi";
}

function formatOfHeader(value: Fields): TranscriptFormat {
  if (value["version"] === undefined && value["created"] !== undefined) return "claw0";
  return value["version"] === 4 ? "openclaw" : "pi";
}

/** Describes one name in a directory. */
export interface ListedName {
  /** States the name without the path of its directory. */
  readonly name: string;
  /** States whether the name belongs to a directory. */
  readonly isDirectory: boolean;
}

/**
 * Names the layout of a directory. `state` holds `agents`; `agent` holds `sessions`; `claw0-agent` holds `sessions` and
 * their index. `sessions` has an index beside transcripts; `claw0-keyed` has an index beside `transcripts`.
 * `claw0-root` holds `.sessions`; `pi-root` holds folders named after working directories. `own-agent` is an agent of
 * Throughline's file store. `transcripts` holds transcripts only.
 */
export type DirectoryLayout =
  | "state"
  | "own-agent"
  | "agent"
  | "claw0-agent"
  | "sessions"
  | "claw0-keyed"
  | "claw0-root"
  | "pi-root"
  | "transcripts"
  | "unknown";

/** Returns the layout of a directory by the names in it. */
export function detectDirectoryLayout(names: readonly ListedName[]): DirectoryLayout {
  const folders = new Set(names.filter((entry) => entry.isDirectory).map((entry) => entry.name));
  const files = names.filter((entry) => !entry.isDirectory).map((entry) => entry.name);
  const hasIndex = files.includes("sessions.json");
  if (folders.has("agents")) return "state";
  if (folders.has("throughline") && folders.has("sessions")) return "own-agent";
  if (folders.has("transcripts") && hasIndex) return "claw0-keyed";
  if (folders.has("sessions")) return hasIndex ? "claw0-agent" : "agent";
  if (hasIndex) return "sessions";
  if (folders.has(".sessions")) return "claw0-root";
  if ([...folders].some((name) => /^--.*--$/.test(name))) return "pi-root";
  return files.some((name) => name.endsWith(".jsonl") || /\.jsonl\.(?:reset|deleted)\b/.test(name))
    ? "transcripts"
    : "unknown";
}
