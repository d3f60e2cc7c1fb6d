import { isAbsolute } from "node:path";
import { type SessionEntry, type SessionState, ThroughlineError } from "@throughline/core";
import { isSessionId, shellWord } from "@throughline/core/internal";
import { type ForeignFormat, foreignFormats } from "@throughline/foreign-formats";
import { importedRecords, type ImportReceipt, receiptOf } from "./import-receipt.ts";
import { isFolder, isThere } from "./node/source-files.ts";
import { usableSessionId } from "./transcript-source.ts";

/** States how a session continues in the program that it was imported from. */
export interface ResumePlan {
  /** Names the format of the program. */
  readonly format: string;
  /** Holds the session's id in the program. */
  readonly sessionId: string;
  /** Names the program's file. */
  readonly path: string;
  /** Names the folder that the session works in; null when the transcript states none. */
  readonly cwd: string | null;
  /** False when the folder is no folder of this machine. True when the transcript states none. */
  readonly isFolderThere: boolean;
  /** True when the session has records that the program's file lacks. */
  readonly isContinuedHere: boolean;
  /** Holds the command that resumes the session, word by word. */
  readonly command: readonly string[];
}

/**
 * Plans how a session continues in its own program. Returns null for a session that began here.
 * @throws {ThroughlineError} INPUT_INVALID when the program cannot resume the session, FILE_NOT_FOUND when the
 *   program's file is missing
 */
export async function planResume({ entry, head, ref }: SessionState): Promise<ResumePlan | null> {
  const receipt = receiptOf(entry);
  if (receipt === null) return null;
  const { format, path, sessionId } = receipt;
  const fork = `\`throughline chat --key ${shellWord(ref.key)}\` continues it here, in a fork.`;
  if (isSubAgent(receipt, entry)) throw noResume(`${programOf(receipt)} resumes no session of a sub-agent`, fork);
  const command = resumeWords(receipt);
  if (command === null) throw noResume(noResumeReason(receipt), fork);
  const cwd = typeof entry.cwd === "string" && entry.cwd !== "" ? entry.cwd : null;
  const missing = await missingForResume({ path, cwd });
  if (missing.includes("file")) {
    throw new ThroughlineError("FILE_NOT_FOUND", `The session's own file is missing: ${path}.`, {
      outcome: "not-applied",
      details: { key: ref.key, path },
      remedy: fork,
    });
  }
  const isFolderThere = !missing.includes("folder");
  const isContinuedHere = head.lastSeq > importedRecords(receipt);
  return { format, sessionId, path, cwd, isFolderThere, isContinuedHere, command };
}

interface ResumeNeeds {
  /** Names the program's file. */
  readonly path: string;
  /** Names the folder that the session works in; null when the transcript states none. */
  readonly cwd: string | null;
}

/** Names what a session needs to continue in its program and what is not on this machine. */
export async function missingForResume({ path, cwd }: ResumeNeeds): Promise<readonly ("file" | "folder")[]> {
  const isFolderThere = cwd === null || (isAbsolute(cwd) && (await isFolder(cwd)));
  return [...((await isSourceThere(path)) ? [] : ["file" as const]), ...(isFolderThere ? [] : ["folder" as const])];
}

function noResume(message: string, remedy: string): ThroughlineError {
  return new ThroughlineError("INPUT_INVALID", `${message}.`, { outcome: "not-applied", remedy });
}

function noResumeReason(receipt: ImportReceipt): string {
  const { format, sessionId, path } = receipt;
  if ((formatOf(format)?.resume?.(sessionId, path) ?? null) === null)
    return `${programOf(receipt)} has no command that resumes a session by its id`;
  return `The transcript does not state the session's id in ${programOf(receipt)}`;
}

function programOf({ format }: ImportReceipt): string {
  return formatOf(format)?.program ?? format;
}

function formatOf(format: string): ForeignFormat | undefined {
  return (foreignFormats as ReadonlyMap<string, ForeignFormat>).get(format);
}

/** These programs treat a sub-agent as part of the session that spawned it, and do not find its file. */
const hidesSubAgents: ReadonlySet<string> = new Set(["claude-code", "gemini", "qwen-code", "kimi-cli", "cline"]);

export function isSubAgent({ format }: ImportReceipt, { spawnedBy }: SessionEntry): boolean {
  return hidesSubAgents.has(format) && spawnedBy !== undefined;
}

/** False for an id that an import derived from the path. An entry may state any text; an id is no option. */
function isProgramsId(sessionId: string, path: string): boolean {
  return isSessionId(sessionId) && sessionId !== usableSessionId("", path);
}

/** Returns the command that resumes an imported session in its program; null when there is none. */
export function resumeWords({ format, path, sessionId }: ImportReceipt): readonly string[] | null {
  if (format === "pi") return resumeInPi(path);
  return isProgramsId(sessionId, path) ? (formatOf(format)?.resume?.(sessionId, path) ?? null) : null;
}

export function resumeInPi(path: string): readonly string[] {
  return ["pi", "--session", path];
}

/** The path of a session in a database names the database, then the session. */
async function isSourceThere(path: string): Promise<boolean> {
  return (await isThere(path)) || (path.includes("#") && (await isThere(path.slice(0, path.lastIndexOf("#")))));
}
