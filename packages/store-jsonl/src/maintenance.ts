import { setImmediate as pause } from "node:timers/promises";
import { createFinding, type Finding, type MaintenanceFacet } from "@throughline/core";
import { quote, refused } from "@throughline/core/store";
import { createLineSplitter } from "@throughline/openclaw-format";
import type { AgentSessions } from "./agent-sessions.ts";
import { appendAll, fileError, flushFolder, openIfThere, readRange, readWhole, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { isUnfinished } from "./foreign-sessions.ts";
import { repairTranscript, type RepairedLine } from "./repair-transcript.ts";
import { readLogLine } from "./log-damage.ts";
import { removeAbandoned } from "./session-copies.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";
import { ParentSurvey, surveyLines, type SurveyTarget } from "./transcript-survey.ts";
import { unreadableFinding } from "./transcript-findings.ts";
import { backupStore } from "./backup-store.ts";

const copyBytes = 1024 * 1024;

export interface MaintenanceScene {
  readonly context: StoreContext;
  /** Every agent of every namespace. */
  agents(): readonly AgentSessions[];
  /** @throws {ThroughlineError} STORE_CLOSED, ABORTED */
  begin(signal?: AbortSignal): void;
}

/** Checks, repairs and copies the files of a store. */
export function createMaintenance(scene: MaintenanceScene): MaintenanceFacet {
  return {
    verify: (options = {}) => withOurErrors(scene, verifyStore(scene, options)),
    repair: (options = {}) => withOurErrors(scene, repairStore(scene, options)),
    backup: async (path, options = {}) => {
      scene.begin(options.signal);
      try {
        return await backupStore(scene, path, options.signal);
      } catch (error) {
        throw ourError(error, path);
      }
    },
  };
}

/** What fails outside of a file's own work fails with our errors too. */
async function* withOurErrors(
  { context }: MaintenanceScene,
  findings: AsyncIterable<Finding>,
): AsyncGenerator<Finding> {
  try {
    yield* findings;
  } catch (error) {
    throw ourError(error, context.root);
  }
}

/** An error of the system has a code like EIO; any other is not the disk's. */
function ourError(error: unknown, path: string): unknown {
  const { code = "" } = error as NodeJS.ErrnoException;
  return /^E[A-Z0-9]+$/.test(code) ? fileError(error, path, "unknown") : error;
}

async function* verifyStore(
  scene: MaintenanceScene,
  { full = false, signal }: { readonly full?: boolean; readonly signal?: AbortSignal },
): AsyncGenerator<Finding> {
  scene.begin(signal);
  for (const agent of scene.agents()) {
    yield* verifyLog(scene, agent);
    agent.log.refresh();
    for (const row of agent.log.all().values().toArray()) {
      scene.begin(signal);
      const path = agent.folder.session(agent.fileNameOf(row));
      yield* pastUnreadable(verifySession(scene, agent, row, full, signal), { path, key: row.key });
    }
    yield* verifyFolder(scene, agent);
    yield* verifyAccess(scene, agent);
  }
}

async function* verifyLog({ context }: MaintenanceScene, { folder, address }: AgentSessions): AsyncGenerator<Finding> {
  const { files, codec } = context;
  const path = folder.entriesLog;
  const handle = openIfThere(files, path);
  if (handle === null) return;
  try {
    const splitter = createLineSplitter({ maxLineBytes: Number.MAX_SAFE_INTEGER });
    let line = 0;
    for (let position = 0; ;) {
      const bytes = withFileErrors(path, () => readRange(files, handle, position, position + 1024 * 1024));
      if (bytes.length === 0) break;
      for (const split of splitter.push(bytes)) {
        const place = { path, line: ++line, byteOffset: split.byteOffset };
        const { decoded, lost } = readLogLine(split.bytes, codec, address);
        if (lost !== null) yield createFinding("ENTRY_UNREADABLE", "A line of the entries log cannot be read.", place);
        if (decoded.some(({ isChecksumRight }) => !isChecksumRight))
          yield createFinding("CHECKSUM_MISMATCH", "A line of the entries log does not fit its checksum.", place);
      }
      position += bytes.length;
      await pause();
    }
    const last = splitter.end();
    if (last !== null)
      yield createFinding("TAIL_TORN", "The last line of the entries log has no end.", {
        path,
        line: line + 1,
        byteOffset: last.byteOffset,
      });
  } finally {
    files.close(handle);
  }
}

async function* verifySession(
  { context }: MaintenanceScene,
  agent: AgentSessions,
  row: SessionRow,
  isFull: boolean,
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding> {
  const path = agent.folder.session(agent.fileNameOf(row));
  const { key } = row;
  if (context.files.facts(path) === null) {
    yield createFinding("SESSION_FILE_MISSING", "The transcript of the session is not there.", { path, key });
    return;
  }
  const findings: Finding[] = [];
  const parents = new ParentSurvey();
  const batch = { left: 0, line: 0, byteOffset: 0 };
  const target = targetOf(context, agent, row, path, isFull, signal);
  for await (const line of surveyLines(target, (finding) => void findings.push(finding))) {
    const { record } = line.read;
    const kept = record["firstKeptEntryId"];
    if (
      record.type === "compaction" &&
      typeof kept === "string" &&
      // Its own id says that it keeps nothing from before.
      kept !== record.id &&
      !parents.has(kept) &&
      line.envelope?.enc === undefined
    )
      findings.push(
        createFinding("COMPACTION_DANGLING", `The first kept record ${quote(kept)} is nowhere before.`, {
          path,
          key,
          line: line.line,
          byteOffset: line.byteOffset,
          recordId: record.id,
        }),
      );
    parents.add(record);
    const [index, count] = line.envelope?.batch ?? [1, 1];
    if (index === 1) Object.assign(batch, { line: line.line, byteOffset: line.byteOffset });
    batch.left = line.envelope === null ? batch.left : count - index;
    yield* findings.splice(0);
  }
  if (batch.left > 0)
    findings.push(
      createFinding("BATCH_INCOMPLETE", "The last append is not complete; it was never acknowledged.", {
        path,
        key,
        line: batch.line,
        byteOffset: batch.byteOffset,
      }),
    );
  yield* findings;
  const cycles = parents.cycles();
  if (cycles.size > 0) yield* cycleFindings(target, cycles);
}

/** Reads the transcript once more: cycles are rare, and a place for every record would be kept in vain mostly. */
async function* cycleFindings(target: SurveyTarget, cycles: ReadonlySet<string>): AsyncGenerator<Finding> {
  const { path, owner } = target;
  for await (const { line, byteOffset, read } of surveyLines(target, () => undefined)) {
    const { id: recordId } = read.record;
    if (!cycles.has(recordId)) continue;
    const place = { path, key: owner.ref.key, line, byteOffset, recordId };
    yield createFinding("PARENT_CYCLE", "The record's parents lead back to itself.", place);
  }
}

function* verifyFolder({ context }: MaintenanceScene, agent: AgentSessions): Generator<Finding> {
  const { files } = context;
  const { sessions, sessionsJson } = agent.folder;
  if (files.facts(sessions) === null) return;
  const known = agent.log.fileNames();
  for (const name of files.names(sessions).filter((one) => one.endsWith(".jsonl") && !known.has(one))) {
    const path = agent.folder.session(name);
    const facts = files.facts(path);
    if (facts?.kind !== "file") {
      yield createFinding("FILE_UNREADABLE", "A link or a folder stands where a transcript belongs.", { path });
    } else if (facts.names > 1) {
      const message = "The file has a second name, maybe elsewhere, and is not taken in; a copy of it would be.";
      yield createFinding("FILE_UNREADABLE", message, { path });
    } else yield* verifyUnindexed(files, path);
  }
  agent.view.entries();
  if (!agent.view.isReadable)
    yield createFinding("INDEX_UNREADABLE", "sessions.json is not a JSON object.", { path: sessionsJson });
}

function* verifyUnindexed(files: Files, path: string): Generator<Finding> {
  try {
    if (isUnfinished(files, path)) return;
    const message = "A transcript that no session has yet; the next list takes it in.";
    yield createFinding("SESSION_UNINDEXED", message, { path });
  } catch (error) {
    const finding = unreadableFinding(error, path, null);
    if (finding === null) throw error;
    yield finding;
  }
}

/** Folders that are made private when they are written to, if that is possible. */
function* verifyAccess({ context: { files } }: MaintenanceScene, { folder }: AgentSessions): Generator<Finding> {
  for (const path of [folder.agent, folder.sessions, folder.own, folder.torn, folder.repaired]) {
    const facts = files.facts(path);
    if (facts !== null && !facts.isPrivate)
      yield createFinding("FOLDER_EXPOSED", "Others than its owner may look into the folder.", { path });
  }
}

async function* repairStore(
  scene: MaintenanceScene,
  { signal }: { readonly signal?: AbortSignal },
): AsyncGenerator<Finding> {
  scene.begin(signal);
  for (const agent of scene.agents()) {
    agent.log.refresh();
    for (const row of agent.log.all().values().toArray()) {
      scene.begin(signal);
      const path = agent.folder.session(agent.fileNameOf(row));
      yield* pastUnreadable(repairSession(scene, agent, row, signal), { path, key: row.key });
    }
  }
}

/** One transcript that nobody may read must not hide what there is to say of the others. */
async function* pastUnreadable(
  findings: AsyncGenerator<Finding>,
  place: { readonly path: string; readonly key: string },
): AsyncGenerator<Finding> {
  try {
    yield* findings;
  } catch (error) {
    const finding = unreadableFinding(error, place.path, place.key);
    if (finding === null) throw error;
    yield finding;
  }
}

/** Writes the repaired copy, what was removed and a report; nothing when there is nothing to repair. */
async function* repairSession(
  scene: MaintenanceScene,
  agent: AgentSessions,
  row: SessionRow,
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding> {
  for (;;) {
    const findings = await repairOnce(scene, agent, row, signal);
    if (findings !== null) return yield* findings;
  }
}

/** Null when the transcript was redacted or purged meanwhile: what was made of it holds the words that had to go. */
async function repairOnce(
  scene: MaintenanceScene,
  agent: AgentSessions,
  row: SessionRow,
  signal: AbortSignal | undefined,
): Promise<readonly Finding[] | null> {
  const { files } = scene.context;
  const path = agent.folder.session(agent.fileNameOf(row));
  // While it is open no other file gets its number, so that the same number means the same file.
  const pin = openIfThere(files, path);
  if (pin === null) return [];
  try {
    const { identity } = withFileErrors(path, () => files.factsOf(pin));
    const isSame = (): boolean => files.facts(path)?.identity === identity;
    try {
      return await repairFile(scene, agent, row, { path, isSame }, signal);
    } catch (error) {
      if (isSame()) throw error;
      return null;
    }
  } finally {
    files.close(pin);
  }
}

async function repairFile(
  { context }: MaintenanceScene,
  agent: AgentSessions,
  row: SessionRow,
  { path, isSame }: { readonly path: string; isSame(): boolean },
  signal: AbortSignal | undefined,
): Promise<readonly Finding[] | null> {
  const { files, locks, clock, random } = context;
  const { repaired: folder, sessions } = agent.folder;
  const fileName = path.slice(sessions.length + 1);
  const copy = `${folder}/${fileName}`;
  agent.prepareWriting();
  withFileErrors(folder, () => files.makeFolder(folder));
  const target = targetOf(context, agent, row, path, false, signal);
  removeAbandoned(files, folder, clock.nowMs());
  // Another process may repair the same.
  const temporary = `${copy}.tmp-${clock.nowMs()}-${random.uint32().toString(36)}`;
  const handle = withFileErrors(temporary, () => files.open(temporary, "create"));
  let sizeBytes = 0;
  const write = (line: string): void => {
    const bytes = Buffer.from(`${line}\n`);
    appendAll(files, handle, bytes, sizeBytes, temporary);
    sizeBytes += bytes.length;
  };
  try {
    const { changes, findings } = await repairTranscript(target, row.createdAtMs, write);
    if (changes.length === 0) return [];
    withFileErrors(copy, () => files.flushNow(handle));
    const keep = (): boolean => {
      if (!isSame()) return false;
      withFileErrors(copy, () => keepRepaired(context, { path, copy, temporary }, { changes, findings }));
      return true;
    };
    if (!(await locks.hold(agent.place.locksFor([row.sessionId], [fileName], false), keep, { signal }))) return null;
    const message = `${changes.length} lines were changed in ${quote(copy)}; the original is as it was.`;
    const place = { path, key: row.key, line: changes.find(({ line }) => line > 0)?.line ?? null, repaired: true };
    const summary = createFinding("LINE_MALFORMED", message, place);
    return [...findings.map((finding) => ({ ...finding, repaired: true })), summary];
  } finally {
    files.close(handle);
    files.remove(temporary);
  }
}

function keepRepaired(
  context: StoreContext,
  { path, copy, temporary }: { readonly path: string; readonly copy: string; readonly temporary: string },
  { changes, findings }: { readonly changes: readonly RepairedLine[]; readonly findings: readonly Finding[] },
): void {
  const { files, clock } = context;
  const removed = `${copy}.removed`;
  const next = `${removed}.tmp`;
  writeWhole(context, next, removedBytes(context, path, changes));
  keepEarlier(files, copy, next);
  files.rename(next, removed);
  const report = { path, copy, removed, atMs: clock.nowMs(), changes: withPlaces(changes), findings };
  writeWhole(context, `${copy}.report.json`, [Buffer.from(`${JSON.stringify(report, null, 2)}\n`)]);
  files.rename(temporary, copy);
  flushFolder(files, copy.slice(0, copy.lastIndexOf("/")));
}

/**
 * What an earlier repair removed may be nowhere else, where its copy took the place of the original: it and its report
 * get names of their own, unless this repair removed the same.
 */
function keepEarlier(files: Files, copy: string, next: string): void {
  const removed = `${copy}.removed`;
  const earlier = readWhole(files, removed);
  if (earlier === null || Buffer.compare(earlier, readWhole(files, next) ?? new Uint8Array()) === 0) return;
  let count = 1;
  while (files.facts(`${removed}.${count}`) !== null) count++;
  for (const name of [removed, `${copy}.report.json`])
    if (files.facts(name) !== null) files.rename(name, `${name}.${count}`);
}

/** Each change with where its bytes lie among those that were removed. */
function withPlaces(changes: readonly RepairedLine[]): readonly unknown[] {
  let removedOffset = 0;
  return changes.map((change) => {
    const place = { ...change, removedOffset };
    removedOffset += change.sizeBytes;
    return place;
  });
}

function* removedBytes({ files }: StoreContext, path: string, changes: readonly RepairedLine[]): Generator<Uint8Array> {
  const handle = openIfThere(files, path);
  if (handle === null) throw refused("STORE_CORRUPT", `The transcript ${quote(path)} is gone.`, { path });
  try {
    for (const { byteOffset, sizeBytes } of changes)
      for (let from = byteOffset, end = byteOffset + sizeBytes; from < end; from += copyBytes)
        yield readRange(files, handle, from, Math.min(end, from + copyBytes));
  } finally {
    files.close(handle);
  }
}

function writeWhole({ files }: StoreContext, path: string, parts: Iterable<Uint8Array>): void {
  files.remove(path);
  const handle = files.open(path, "create");
  try {
    let sizeBytes = 0;
    for (const part of parts) {
      appendAll(files, handle, part, sizeBytes, path);
      sizeBytes += part.length;
    }
    files.flushNow(handle);
  } finally {
    files.close(handle);
  }
}

function targetOf(
  { files, codec, maxLineBytes }: StoreContext,
  agent: AgentSessions,
  row: SessionRow,
  path: string,
  isFull: boolean,
  signal: AbortSignal | undefined,
): SurveyTarget {
  const owner = { ref: { ...agent.address, key: row.key }, sessionId: row.sessionId };
  return { files, path, owner, codec, maxLineBytes, isFull, signal };
}
