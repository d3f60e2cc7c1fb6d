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
import type { WritableFormatName } from "@throughline/foreign-formats/internal";
import { joinPath } from "@throughline/openclaw-format/internal";
import { readIfThere } from "./companion-files.ts";
import { exportToFile, piFilePath, type ExportedFile } from "./export-files.ts";
import { workingDirectoryOf, type ExportRemark } from "./export-types.ts";
import { handOffId, noteHandOff, writtenFacts } from "./handed-off.ts";
import { importedRecords, receiptOf } from "./import-receipt.ts";
import { canonicalPath, eachSourceName, isThere } from "./node/source-files.ts";
import { appendLine, writeNewFile } from "./node/target-files.ts";
import { isSubAgent, resumeInPi, resumeWords } from "./resume-session.ts";
import { openclawPlace, piPlace, rootOf } from "./foreign/foreign-places.ts";

/** Names a program that can continue a session. */
export type HandOffTarget = HandOffFormat | "pi" | "openclaw";

/** Names a format whose program finds a session by its file alone. */
type HandOffFormat = Extract<WritableFormatName, "claude-code" | "codex" | "gemini">;

/** Sets the program, the folders and the hooks of a hand-off. */
export interface HandOffOptions {
  /** Selects the program that continues the session. */
  readonly to: HandOffTarget;
  /** Holds the environment variables that state where programs keep their sessions. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Names the user's home directory, below which programs keep their sessions by default. */
  readonly userHome: string;
  /** Names the folder in which the session continues when its entry names none. */
  readonly workingDirectory: string;
  /** Supplies the new session's id. @default the system's */
  readonly random?: RandomSource | undefined;
  /** Receives a remark for each record that is left out, added or changed. */
  readonly onRemark?: ((remark: ExportRemark) => void) | undefined;
  /** Ends the export with ABORTED; an unfinished file is removed. */
  readonly signal?: AbortSignal | undefined;
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

/** Describes a session that was written for another program. */
export interface HandedOffSession extends ExportedFile {
  /** Holds the session id under which the program lists the session. */
  readonly sessionId: string;
  /** Names the folder in which the program continues. */
  readonly cwd: string;
  /** Holds the command that resumes the session, word by word. */
  readonly command: readonly string[];
  /** Holds the environment variables that the command needs. */
  readonly variables: Readonly<Record<string, string>>;
  /**
   * False when the session came from the program and no file was written, because the program's own file is resumed.
   */
  readonly isCopy: boolean;
  /** States why a session that came from the program was copied; null for any other session, and without a copy. */
  readonly copiedBecause: CopyReason | null;
  /** True when the session's entry lists the file, so that an import skips the file until it grows. */
  readonly isNoted: boolean;
}

/** States why the program's own file cannot be resumed. */
interface CopyReason {
  /** `source-missing`: the file does not exist. `continued-here`: the session has records that the file lacks. */
  readonly why: "source-missing" | "continued-here";
  /** Names the file that the session was imported from. */
  readonly path: string;
}

type Written = Omit<HandedOffSession, "isCopy" | "copiedBecause" | "isNoted">;

/**
 * Writes a session where another program finds it: a new session of that program, in a new file, with a new id.
 * The entry of the session lists the file, so that an import skips it. A session that was imported from that program
 * and not continued here is not written: the program's own file is resumed.
 * @throws {ThroughlineError} SESSION_NOT_FOUND, EXPORT_EXISTS, INPUT_INVALID if the program's folder for the session
 *   is unknown, and errors of the file system
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
  const sessionId = handOffId((options.random ?? systemRandom).uuid());
  const { lastSeq, headId } = state.head;
  const note = { format: options.to, sessionId, lastSeq, headId };
  // A sync may find the file before this function goes on, so the note comes first.
  await noteHandOff(store, state.ref, { ...note, path: "", sizeBytes: 0, sha256: "", lineCount: 0 });
  const written = await copied(store, state, cwd, { ...options, sessionId });
  const path = await canonicalPath(written.path);
  const isNoted = await noteHandOff(store, state.ref, { ...note, path, ...(await writtenFacts(path)) });
  return { ...written, isCopy: true, copiedBecause: own, isNoted };
}

/** Returns the program's own file, or the reason why it cannot be resumed; null for a session of another program. */
async function ownFile(state: SessionState, cwd: string, to: HandOffTarget): Promise<Written | CopyReason | null> {
  const receipt = receiptOf(state.entry);
  if (receipt === null || receipt.format !== to) return null;
  if (isSubAgent(receipt, state.entry)) return null;
  const command = resumeWords(receipt);
  if (command === null) return null;
  const { path, sessionId, sizeBytes } = receipt;
  if (!(await isThere(path))) return { why: "source-missing", path };
  const records = importedRecords(receipt);
  if (state.head.lastSeq > records) return { why: "continued-here", path };
  const { key } = state.ref;
  return { path, key, sessionId, records, sizeBytes, remarks: [], error: null, cwd, command, variables: {} };
}

/** Adds the id of the new session to the options. */
type HandOffCopyOptions = HandOffOptions & { readonly sessionId: string };

function copied(store: SessionStore, state: SessionState, cwd: string, options: HandOffCopyOptions): Promise<Written> {
  if (options.to === "pi") return toPi(store, state, cwd, options);
  if (options.to === "openclaw") return toOpenclaw(store, state, cwd, options);
  return toFormat(store, state, cwd, { ...options, to: options.to });
}

type Given<Target> = Omit<HandOffCopyOptions, "to"> & { readonly to: Target };

async function toFormat(
  store: SessionStore,
  state: SessionState,
  cwd: string,
  options: Given<HandOffFormat>,
): Promise<Written> {
  const format = foreignFormats.get(options.to) as ForeignFormat & Required<Pick<ForeignFormat, "writer">>;
  const { writer } = format;
  const nowMs = systemClock.nowMs();
  const { sessionId } = options;
  const [place] = format.places;
  const root = place === undefined ? null : rootOf(place, options);
  const projectFolder = root === null ? null : await projectFolderOf(writer, root, cwd);
  const parts = writer.path({ sessionId, cwd, createdAtMs: nowMs, projectFolder });
  if (parts === null || root === null) {
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
  const path = joinPath(root, ...parts);
  const name = new ListedName(writer, state, options);
  const given = { ...written({ ...options, onRemark: name.onRemark }, cwd), to: options.to, sessionId };
  const file = await exportToFile(store, state.ref, path, given);
  await name.addTo(root, { sessionId, atMs: nowMs });
  const remarks = file.remarks.filter((remark) => !name.isElsewhere(remark));
  return { ...file, remarks, sessionId, cwd, command: format.resume?.(sessionId, path) ?? [], variables: {} };
}

/** Adds the name of a session to the program's list of names, where the program keeps names in one. */
class ListedName {
  readonly #list: FormatWriter["nameList"];
  readonly #name: string;
  readonly #report: (remark: ExportRemark) => void;
  /** The export reports a name without a place. The remark waits until the list is written. */
  #left: ExportRemark | null = null;
  #isListed = false;

  constructor({ nameList }: FormatWriter, { entry: { label } }: SessionState, { onRemark }: Given<HandOffFormat>) {
    this.#name = typeof label === "string" ? label : "";
    this.#list = nameList;
    this.#report = (remark) => onRemark?.(remark);
  }

  readonly onRemark = (remark: ExportRemark): void => {
    if (this.#list !== undefined && remark.kind === nameKind) this.#left = remark;
    else this.#report(remark);
  };

  /** A list that cannot be written costs the session its name only, which the remark then reports. */
  async addTo(root: string, session: { readonly sessionId: string; readonly atMs: number }): Promise<void> {
    if (this.#list === undefined || this.#left === null) return;
    const line = this.#list.line({ ...session, name: this.#name });
    this.#isListed = await appendLine(joinPath(root, this.#list.file), line);
    if (!this.#isListed) this.#report(this.#left);
  }

  isElsewhere({ kind }: ExportRemark): boolean {
    return this.#isListed && kind === nameKind;
  }
}

const nameKind = "name of the session";

/**
 * Finds the folder that the program assigned to a project, by the note file in it. Null when the program writes no
 * notes or none names the project.
 */
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

async function toPi(
  store: SessionStore,
  state: SessionState,
  cwd: string,
  options: HandOffCopyOptions,
): Promise<Written> {
  const { sessionId } = options;
  const folder = joinPath(rootOf(piPlace, options), "sessions");
  const path = piFilePath(folder, { cwd, atMs: systemClock.nowMs(), sessionId, key: state.ref.key });
  const file = await exportToFile(store, state.ref, path, { ...written(options, cwd), to: "pi", sessionId });
  return { ...file, sessionId, cwd, command: resumeInPi(path), variables: {} };
}

/**
 * OpenClaw finds a session by its index, which a hand-off must not change. If the agent already exists there, the
 * session gets a separate state directory beside the program's.
 */
async function toOpenclaw(
  store: SessionStore,
  state: SessionState,
  cwd: string,
  options: HandOffCopyOptions,
): Promise<Written> {
  const { sessionId } = options;
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
  await writeNewFile(joinPath(folder, "sessions.json"), [jsonBytes({ [key]: entry })], options.random ?? systemRandom);
  const variables: Readonly<Record<string, string>> = isInUse ? { OPENCLAW_STATE_DIR: directory } : {};
  return { ...file, sessionId, cwd, command: ["openclaw", "tui", "--session", key], variables };
}

function jsonBytes(index: Readonly<Record<string, unknown>>): Uint8Array {
  return Buffer.from(`${JSON.stringify(index, null, 2)}\n`);
}

function written(
  { random, onRemark, signal }: Pick<HandOffOptions, "random" | "onRemark" | "signal">,
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
