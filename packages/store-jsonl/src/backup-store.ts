import { resolve } from "node:path";
import { setImmediate as pause } from "node:timers/promises";
import { ThroughlineError } from "@throughline/core";
import { quote, refused } from "@throughline/core/internal";
import { createLineSplitter } from "@throughline/openclaw-format";
import type { SplitLine } from "@throughline/openclaw-format/internal";
import type { AgentFolder } from "./agent-folder.ts";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { lostEnd, type LostEnd } from "./lost-records.ts";
import {
  afterCommit,
  appendAll,
  fileError,
  flushFolder,
  folderOf,
  makeFolders,
  openIfThere,
  readRange,
  withFileErrors,
} from "./file-work.ts";
import type { Files } from "./files.ts";
import { damagedLineError, hasOtherEnd, isWholeLine } from "./line-damage.ts";
import type { MaintenanceContext } from "./maintenance-context.ts";
import { readLogInSlices } from "./read-log.ts";
import { DamagedEntry } from "./undecodable-entry.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";
import { wholeIfOurs, type ReadBytes } from "./transcript-lines.ts";

const chunkBytes = 1024 * 1024;

/**
 * Copies a store into a new folder that can be opened as a store. The entries are copied first: later appends are in
 * the transcripts, which also carry their entry patches. Kept copies of damaged parts, locks and derived files are left
 * out. The folder is named `<path>.part-<random>` until all of it is on the disk. A folder of that name is left when
 * the process dies.
 * @throws {ThroughlineError} INPUT_INVALID when there is something at the path; STORE_CORRUPT for a line that does not fit its
 * checksum: a backup before it may be whole; STORE_FULL, STORE_IO, ABORTED
 */
export async function backupStore(
  { context, agents, begin }: MaintenanceContext,
  path: string,
  signal: AbortSignal | undefined,
): Promise<{ readonly sizeBytes: number }> {
  const { files, root, random } = context;
  const target = resolve(path);
  if (withFileErrors(target, () => files.facts(target)) !== null)
    throw refused("INPUT_INVALID", `There is something at ${quote(target)} already.`, { path: target });
  const part = `${target}.part-${random.uint32().toString(36)}`;
  const copied: string[] = [];
  const made: string[] = [part];
  let sizeBytes = 0;
  const copy: CopyOpened = async (from, source, to, transcript) => {
    begin(signal);
    const target = `${part}${to.slice(root.length)}`;
    copied.push(target);
    const lines = transcript === undefined ? null : new CopiedLines(context, from, source);
    const end = transcript?.end ?? null;
    sizeBytes += await copyFile(files, { path: from, handle: source, end, lines }, target, () => begin(signal));
  };
  makeFolders(files, part);
  try {
    for (const agent of agents()) {
      const { sessions, own, files: stored, fileReferences } = agent.folder;
      const beside = [stored, fileReferences].filter((one) => files.facts(one) !== null);
      const folders = [sessions, own, ...beside].map((one) => `${part}${one.slice(root.length)}`);
      made.push(...folders);
      for (const folder of folders) makeFolders(files, folder);
      await copyUnpurged(context, agent, copy, copied);
      for (const folder of folders) flushFolder(files, folder);
    }
    withFileErrors(target, () => files.rename(part, target));
  } catch (error) {
    try {
      // The copies are removed first, because the disk may be full.
      for (const each of copied) files.remove(each);
      removeFolders(files, part, [...made, ...copied.map(folderOf)]);
    } catch {
      // The cleanup may fail on the same disk. The first error is the one to report.
    }
    throw fileError(error, target);
  }
  afterCommit(target, () => flushFolder(files, folderOf(target)));
  return { sizeBytes };
}

function removeFolders(files: Files, part: string, paths: readonly string[]): void {
  const folders = new Set<string>();
  for (const path of paths)
    for (let folder = path; folder.length >= part.length; folder = folderOf(folder)) folders.add(folder);
  for (const folder of [...folders].toSorted((a, b) => b.length - a.length)) files.removeFolder(folder);
}

/**
 * Copies an agent's files, and starts again when a session was purged meanwhile. The copied entries would name that
 * session without its transcript.
 */
async function copyUnpurged(
  context: StoreContext,
  agent: AgentSessionFiles,
  copy: CopyOpened,
  copied: string[],
): Promise<void> {
  const before = copied.length;
  for (;;) {
    agent.log.refresh();
    const known = [...agent.log.rows.keys()];
    await copyAgent(context, agent, copy);
    agent.log.refresh();
    if (known.every((sessionId) => agent.log.row(sessionId) !== null)) return;
    for (const path of copied.splice(before)) context.files.remove(path);
  }
}

type CopyOpened = (
  from: string,
  source: number,
  to: string,
  transcript?: { readonly end: LostEnd | null },
) => Promise<void>;

async function copyAgent(context: StoreContext, agent: AgentSessionFiles, copy: CopyOpened): Promise<void> {
  const { files } = context;
  const { folder } = agent;
  await assertLogWhole(context, agent);
  const before = transcriptNames(files, agent);
  const entries = openEntries(files, folder);
  try {
    for (const { path, handle } of entries) if (handle !== null) await copy(path, handle, path);
  } finally {
    closeAll(files, entries);
  }
  await copyStoredFiles(files, agent, copy);
  for (const name of new Set([...before, ...transcriptNames(files, agent)])) {
    // A transcript that is archived or restored meanwhile is copied under its name in the copied entries, so that the
    // backup is consistent.
    for (let from: string | null = name; from !== null && !(await copyIfThere(context, copy, agent, from, name));)
      from = presentName(agent, name, from);
  }
}

/** A file that is deleted meanwhile is left out. */
async function copyStoredFiles(files: Files, agent: AgentSessionFiles, copy: CopyOpened): Promise<void> {
  for (const path of agent.stored.paths()) {
    const handle = openIfThere(files, path);
    if (handle === null) continue;
    try {
      await copy(path, handle, path);
    } finally {
      files.close(handle);
    }
  }
}

async function copyIfThere(
  context: StoreContext,
  copy: CopyOpened,
  agent: AgentSessionFiles,
  from: string,
  to: string,
): Promise<boolean> {
  const { files } = context;
  const { folder } = agent;
  const handle = openIfThere(files, folder.session(from));
  if (handle === null) return false;
  try {
    await copy(folder.session(from), handle, folder.session(to), { end: await lostEndOf(context, agent, from) });
    return true;
  } finally {
    files.close(handle);
  }
}

/** Checks each line while it is copied, so that a damaged line fails the backup. */
class CopiedLines {
  readonly #context: Pick<StoreContext, "files" | "maxLineBytes">;
  readonly #path: string;
  readonly #handle: number;
  readonly #splitter: ReturnType<typeof createLineSplitter>;
  #line = 0;

  constructor(context: Pick<StoreContext, "files" | "maxLineBytes">, path: string, handle: number) {
    this.#context = context;
    this.#path = path;
    this.#handle = handle;
    this.#splitter = createLineSplitter({ maxLineBytes: context.maxLineBytes });
  }

  /** @throws {ThroughlineError} STORE_CORRUPT */
  take(bytes: Uint8Array): void {
    const read: ReadBytes = (from, to) =>
      withFileErrors(this.#path, () => readRange(this.#context.files, this.#handle, from, to));
    for (const split of this.#splitter.push(bytes)) {
      this.#line++;
      if (!isWholeLine(wholeIfOurs(read, split).bytes)) this.#refuse(split);
    }
  }

  /** A last line without a line feed was never acknowledged. A whole line with another byte in its place is damage. */
  end(): void {
    const last = this.#splitter.end();
    this.#line++;
    if (last !== null && hasOtherEnd(last.bytes)) this.#refuse(last);
  }

  #refuse({ byteOffset }: SplitLine): never {
    throw damagedLineError(this.#path, this.#line, byteOffset);
  }
}

/** @throws {ThroughlineError} STORE_CORRUPT when the newest line about a session does not fit its checksum */
async function assertLogWhole({ files, codec }: StoreContext, { folder, address }: AgentSessionFiles): Promise<void> {
  const read = await readLogInSlices({ files, folder, codec, agent: address });
  if (read === null) return;
  const { damage, image } = read;
  const row = (sessionId: string): SessionRow | null => image.rows.get(sessionId) ?? null;
  const suspects = damage.suspected({ row, holder: (key) => row(image.idByKey.get(key) ?? "") });
  const entries = image.rows.values().map(({ entry }) => entry);
  const suspect = suspects.find(({ line }) => line !== null);
  const line = suspect?.line ?? entries.find((entry) => entry instanceof DamagedEntry)?.line;
  if (line == null) return;
  const message = `Line ${line} of ${quote(folder.entriesLog)} is damaged: it does not fit its checksum.`;
  throw refused("STORE_CORRUPT", message, { path: folder.entriesLog, line });
}

/** Returns the text that must follow the copy of a transcript. An unreadable transcript is copied unchanged. */
async function lostEndOf(context: StoreContext, agent: AgentSessionFiles, name: string): Promise<LostEnd | null> {
  try {
    agent.log.refresh();
    const row = rowOf(agent, name);
    if (row === null) return null;
    await agent.prepare(row);
    const held = agent.open(row);
    return held?.path === agent.folder.session(name) ? lostEnd(context, held) : null;
  } catch (error) {
    if (!ThroughlineError.isInstance(error)) throw error;
    return null;
  }
}

interface OpenedFile {
  readonly path: string;
  readonly handle: number | null;
}

/**
 * Opens the files of the entries as they were at one moment. A sessions.json that does not match its base would look
 * like another program's change, and undo saves. The log is opened last, so that it includes every change that the base
 * counts as merged.
 */
function openEntries(files: Files, folder: AgentFolder): readonly OpenedFile[] {
  const paths = [folder.sessionsJson, folder.viewBase, folder.viewNext, folder.entriesLog];
  for (;;) {
    const opened: OpenedFile[] = [];
    try {
      for (const path of paths) opened.push({ path, handle: openIfThere(files, path) });
      // Each file is replaced rather than changed, so its content is fixed while it is open.
      if (opened.every(({ path, handle }) => isStillThere(files, path, handle))) return opened;
    } catch (error) {
      closeAll(files, opened);
      throw error;
    }
    closeAll(files, opened);
  }
}

function isStillThere(files: Files, path: string, handle: number | null): boolean {
  const facts = withFileErrors(path, () => files.facts(path));
  return handle === null ? facts === null : facts?.identity === files.factsOf(handle).identity;
}

function closeAll(files: Files, opened: readonly OpenedFile[]): void {
  for (const { handle } of opened) if (handle !== null) files.close(handle);
}

function rowOf({ log }: AgentSessionFiles, name: string): SessionRow | null {
  const isNamed = ({ fileName, formerFileName }: SessionRow): boolean => fileName === name || formerFileName === name;
  return log.rows.values().find(isNamed) ?? null;
}

/**
 * Returns the current name of a transcript. It returns null when the file is gone, or when the name is still `last`,
 * which was just tried.
 */
function presentName(agent: AgentSessionFiles, name: string, last: string): string | null {
  agent.log.refresh();
  const row = rowOf(agent, name);
  const present = row === null ? null : agent.fileNameOf(row);
  return present === last ? null : present;
}

function transcriptNames(files: Files, { folder }: AgentSessionFiles): readonly string[] {
  if (files.facts(folder.sessions) === null) return [];
  return files
    .names(folder.sessions)
    .filter((name) => name.includes(".jsonl") && !name.endsWith(".lock"))
    .filter((name) => files.facts(folder.session(name))?.kind === "file");
}

interface CopiedFile {
  readonly path: string;
  readonly handle: number;
  readonly end: LostEnd | null;
  /** Is null for a file whose lines have no checksums. */
  readonly lines: CopiedLines | null;
}

/** Copies the file up to its size at the start, because it may grow meanwhile. Returns the number of copied bytes. */
async function copyFile(
  files: Files,
  { path, handle: source, end, lines }: CopiedFile,
  to: string,
  goOn: () => void,
): Promise<number> {
  const target = withFileErrors(to, () => files.open(to, "create"));
  try {
    const { sizeBytes } = withFileErrors(path, () => files.factsOf(source));
    for (let position = 0; position < sizeBytes;) {
      const end = Math.min(position + chunkBytes, sizeBytes);
      const bytes = withFileErrors(path, () => readRange(files, source, position, end));
      if (bytes.length === 0) break;
      lines?.take(bytes);
      appendAll(files, target, bytes, position, to);
      position += bytes.length;
      await pause();
      goOn();
    }
    lines?.end();
    const more = Buffer.from(end?.fromBytes === sizeBytes ? end.text : "");
    if (more.length > 0) appendAll(files, target, more, sizeBytes, to);
    await files.flush(target);
    return sizeBytes + more.length;
  } finally {
    files.close(target);
  }
}
