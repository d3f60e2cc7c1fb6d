import {
  assertKnownOptions,
  loadExisting,
  optionKinds,
  type OptionTable,
  portKinds,
  quote,
  systemClock,
  systemRandom,
} from "@throughline/core/internal";
import {
  type RandomSource,
  type SessionRef,
  type SessionState,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import { type ForeignFormat, foreignFormats, type FormatWriter } from "@throughline/foreign-formats";
import { type WritableFormatName } from "@throughline/foreign-formats/internal";
import { joinPath } from "@throughline/openclaw-format/internal";
import { readIfThere } from "./companion-files.ts";
import { exportToFile, piFilePath, type ExportedFile } from "./export-files.ts";
import { workingDirectoryOf, type ExportRemark } from "./export-types.ts";
import { noteHandOff } from "./handed-off.ts";
import { importedRecords, receiptOf } from "./import-receipt.ts";
import { canonicalPath, eachSourceName, isThere } from "./node/source-files.ts";
import { writeNewFile } from "./node/target-files.ts";
import { rootOf } from "./program-places.ts";

/** The programs that can continue a session. */
export type HandOffTarget = HandOffFormat | "pi" | "openclaw";

/** Formats whose program finds a session by its file alone. */
type HandOffFormat = Extract<WritableFormatName, "claude-code" | "codex" | "gemini">;

/** Options of `handOff`. */
export interface HandOffOptions {
  /** The program that continues the session. */
  readonly to: HandOffTarget;
  /** Variables that say where programs keep their sessions. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The user's home directory, below which programs keep their sessions by default. */
  readonly userHome: string;
  /** The folder the session continues in when its entry names none. */
  readonly workingDirectory: string;
  /** For the new session's id. @default the system's */
  readonly random?: RandomSource;
  /** Called for each record that is left out, added or changed. */
  readonly onRemark?: (remark: ExportRemark) => void;
  /** Ends the export with ABORTED; an unfinished file is removed. */
  readonly signal?: AbortSignal;
}

const { callback, filledText, object, required, signal: signalKind } = optionKinds;
const handOffTable: OptionTable<HandOffOptions> = {
  to: required(filledText),
  environment: required(object),
  userHome: required(filledText),
  workingDirectory: required(filledText),
  random: portKinds.random,
  onRemark: callback,
  signal: signalKind,
};

/** A session that was written for another program. */
export interface HandedOffSession extends ExportedFile {
  /** The id that the program knows it by. */
  readonly sessionId: string;
  /** The folder the program continues in. */
  readonly cwd: string;
  /** The command that resumes it there, word by word. */
  readonly command: readonly string[];
  /** Variables that the command needs. */
  readonly variables: Readonly<Record<string, string>>;
  /** False for a session of the program itself: its own file is resumed, and nothing was written. */
  readonly isCopy: boolean;
  /** Why a session of the program itself was copied all the same; null for any other session, and without a copy. */
  readonly copiedBecause: CopyReason | null;
  /** Whether the session's entry lists the file, so that an import skips it while it has not grown. */
  readonly isNoted: boolean;
}

/** `source-missing`: its file is not there. `continued-here`: the session has records that its file has not. */
export interface CopyReason {
  /** Why the program's own file does not do. */
  readonly why: "source-missing" | "continued-here";
  /** The file that the session was imported from. */
  readonly path: string;
}

type Written = Omit<HandedOffSession, "isCopy" | "copiedBecause" | "isNoted">;

/**
 * Writes a session where another program finds it: a new session of that program, in a new file, with an id of its own.
 * The entry of the session lists the file, so that an import skips it. A session that was imported from that program and not
 * continued here is not written: its own file is resumed.
 * @throws {ThroughlineError} SESSION_NOT_FOUND, EXPORT_EXISTS, INPUT_INVALID where the program's folder for the session is not
 *   known, and what writing a file throws
 * @example const { command } = await handOff(store, ref, { to: "claude-code", environment, userHome, workingDirectory });
 */
export async function handOff(
  store: SessionStore,
  ref: SessionRef,
  options: HandOffOptions,
): Promise<HandedOffSession> {
  assertKnownOptions<HandOffOptions>("handOff", options, handOffTable);
  const state = await loadExisting(store, ref);
  const stated = workingDirectoryOf(null, state.entry, { to: "jsonl", workingDirectory: options.workingDirectory });
  const cwd = await canonicalPath(stated);
  const own = await ownFile(state, cwd, options.to);
  if (own !== null && "command" in own) return { ...own, isCopy: false, copiedBecause: null, isNoted: false };
  const written = await copied(store, state, cwd, options);
  const { sessionId, path, sizeBytes } = written;
  const noted = { format: options.to, sessionId, path: await canonicalPath(path), sizeBytes };
  const isNoted = await noteHandOff(store, state.ref, noted);
  return { ...written, isCopy: true, copiedBecause: own, isNoted };
}

/** The file of a session that the program itself made, or why it does not do; null for any other session. */
async function ownFile(state: SessionState, cwd: string, to: HandOffTarget): Promise<Written | CopyReason | null> {
  const receipt = receiptOf(state.entry);
  if (receipt === null || receipt.format !== to) return null;
  // Claude Code knows a sub-agent as a part of the session that spawned it, and resumes none.
  if (to === "claude-code" && state.entry.spawnedBy !== undefined) return null;
  const { path, sessionId, sizeBytes } = receipt;
  const command =
    to === "pi" ? ["pi", "--session", path] : foreignFormats.get(to as HandOffFormat)?.writer?.resume?.(sessionId);
  if (command === undefined) return null;
  if (!(await isThere(path))) return { why: "source-missing", path };
  const records = importedRecords(receipt);
  if (state.head.lastSeq > records) return { why: "continued-here", path };
  const { key } = state.ref;
  return { path, key, sessionId, records, sizeBytes, remarks: [], error: null, cwd, command, variables: {} };
}

function copied(store: SessionStore, state: SessionState, cwd: string, options: HandOffOptions): Promise<Written> {
  if (options.to === "pi") return toPi(store, state, cwd, options);
  if (options.to === "openclaw") return toOpenclaw(store, state, cwd, options);
  return toFormat(store, state, cwd, { ...options, to: options.to });
}

type Given<Target> = Omit<HandOffOptions, "to"> & { readonly to: Target };

async function toFormat(
  store: SessionStore,
  state: SessionState,
  cwd: string,
  options: Given<HandOffFormat>,
): Promise<Written> {
  const format = foreignFormats.get(options.to) as ForeignFormat & Required<Pick<ForeignFormat, "writer">>;
  const { writer } = format;
  const nowMs = systemClock.nowMs();
  const sessionId = writer.sessionId({ sessionId: newId(options), createdAtMs: nowMs });
  const [place] = format.places;
  const projectFolder = place === undefined ? null : await projectFolderOf(writer, rootOf(place, options), cwd);
  const parts = writer.path({ sessionId, cwd, createdAtMs: nowMs, projectFolder });
  if (parts === null || place === undefined) {
    throw new ThroughlineError(
      "INPUT_INVALID",
      `${format.program} keeps the sessions of ${quote(cwd)} under a name that is not known.`,
      {
        outcome: "not-applied",
        details: { cwd, to: options.to },
        remedy: `Write a file with \`throughline export KEY --to ${options.to} -o FILE\`, and move it to its place.`,
      },
    );
  }
  const path = joinPath(rootOf(place, options), ...parts);
  const file = await exportToFile(store, state.ref, path, { ...written(options, cwd), to: options.to, sessionId });
  return { ...file, sessionId, cwd, command: writer.resume?.(sessionId) ?? [], variables: {} };
}

/** The folder in which a program keeps what belongs to a project, where it notes that in files; null where it notes none. */
async function projectFolderOf({ projectNotes }: FormatWriter, root: string, cwd: string): Promise<string | null> {
  if (projectNotes === undefined) return null;
  const folder = joinPath(root, ...projectNotes.folders);
  const names: string[] = [];
  if (await isThere(folder)) {
    await eachSourceName(folder, ({ name, isDirectory }) => {
      if (isDirectory) names.push(name);
    });
  }
  for (const name of names.toSorted()) {
    const note = await readIfThere(joinPath(folder, name, projectNotes.file));
    if (note?.trim() === cwd) return name;
  }
  return null;
}

const piPlace = { variables: ["PI_CODING_AGENT_DIR"], home: ".pi/agent" };

async function toPi(store: SessionStore, state: SessionState, cwd: string, options: HandOffOptions): Promise<Written> {
  const sessionId = newId(options);
  const folder = joinPath(rootOf(piPlace, options), "sessions");
  const path = piFilePath(folder, { cwd, atMs: systemClock.nowMs(), sessionId, key: state.ref.key });
  const file = await exportToFile(store, state.ref, path, { ...written(options, cwd), to: "pi", sessionId });
  return { ...file, sessionId, cwd, command: ["pi", "--session", path], variables: {} };
}

const openclawPlace = { variables: ["OPENCLAW_STATE_DIR"], home: ".openclaw" };

/**
 * OpenClaw finds a session by its index, which is not changed here: where there is one already, the session gets a state
 * directory of its own beside it.
 */
async function toOpenclaw(
  store: SessionStore,
  state: SessionState,
  cwd: string,
  options: HandOffOptions,
): Promise<Written> {
  const sessionId = newId(options);
  const { agentId } = state.ref;
  const root = rootOf(openclawPlace, options);
  const isInUse = await isThere(joinPath(root, "agents", agentId));
  const directory = isInUse ? `${root}-${sessionId.slice(0, 8)}` : root;
  const folder = joinPath(directory, "agents", agentId, "sessions");
  const path = joinPath(folder, `${sessionId}.jsonl`);
  const file = await exportToFile(store, state.ref, path, { ...written(options, cwd), to: "openclaw", sessionId });
  const key = `agent:${agentId}:handoff:direct:${sessionId}`;
  const { label } = state.entry;
  const named = typeof label === "string" ? { label } : {};
  const entry = { sessionId, updatedAt: state.updatedAtMs, sessionFile: path, ...named };
  await writeNewFile(joinPath(folder, "sessions.json"), textOf({ [key]: entry }), options.random ?? systemRandom);
  const variables: Readonly<Record<string, string>> = isInUse ? { OPENCLAW_STATE_DIR: directory } : {};
  return { ...file, sessionId, cwd, command: ["openclaw", "tui", "--session", key], variables };
}

async function* textOf(index: Readonly<Record<string, unknown>>): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`${JSON.stringify(index, null, 2)}\n`);
}

function newId({ random = systemRandom }: Pick<HandOffOptions, "random">): string {
  return random.uuid();
}

function written(
  { random, onRemark, signal }: Omit<HandOffOptions, "to">,
  cwd: string,
): {
  readonly workingDirectory: string;
  readonly random?: RandomSource;
  readonly onRemark?: (remark: ExportRemark) => void;
  readonly signal?: AbortSignal;
} {
  return {
    workingDirectory: cwd,
    ...(random === undefined ? {} : { random }),
    ...(onRemark === undefined ? {} : { onRemark }),
    ...(signal === undefined ? {} : { signal }),
  };
}
