import { createFinding, quote, refused } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import {
  appendAll,
  copyBytes,
  flushFolder,
  folderOf,
  makeFolders,
  openIfThere,
  readRange,
  withFileErrors,
} from "./file-work.ts";
import type { Files } from "./files.ts";
import { repairPartials } from "./stale-partials.ts";
import { repairTranscript, type RepairedLine } from "./repair-transcript.ts";
import { withRepairedEntry } from "./recover-entries.ts";
import { DamagedEntry } from "./undecodable-entry.ts";
import { removeAbandoned } from "./session-copies.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";
import { pastUnreadable, targetOf, type MaintenanceContext } from "./maintenance-context.ts";

/**
 * Writes a repaired copy beside each damaged transcript. The original is not changed, because a person decides whether
 * to replace it.
 */
export async function* repairStore(
  scope: MaintenanceContext,
  { signal }: { readonly signal?: AbortSignal | undefined },
): AsyncGenerator<Finding> {
  scope.begin(signal);
  for (const agent of scope.agents()) {
    agent.log.refresh();
    // Reading the entries reports damage, and the rebuild reports its result, as events of the store.
    agent.mirror.entries();
    if (!agent.mirror.isReadable) await scope.rebuild(agent);
    await agent.adoption.adopt();
    const rows = agent.log.rows.values().toArray();
    if (rows.length > 0) prepareFolder(scope, agent);
    for (const row of rows) {
      scope.begin(signal);
      if (row.entry instanceof DamagedEntry) yield await repairEntry(scope.context, agent, row, signal);
      const path = agent.folder.session(agent.fileNameOf(row));
      yield* pastUnreadable(repairSession(scope, agent, row, signal), { path, key: row.key });
    }
    if (agent.log.damage.line !== null) yield await rewriteLog(scope.context, agent, signal);
    yield* repairPartials(scope.context, agent);
  }
}

async function repairEntry(
  { locks }: StoreContext,
  { folder, log }: AgentSessionFiles,
  row: SessionRow,
  signal: AbortSignal | undefined,
): Promise<Finding> {
  await locks.hold(
    [folder.entriesLock, folder.sessionLock(row.sessionId)],
    () => {
      log.refreshHeld();
      const now = log.row(row.sessionId);
      const repaired = now === null ? null : withRepairedEntry(now);
      if (repaired !== null) log.write({ op: "save", rows: [repaired] });
    },
    { signal },
  );
  const message = "What is left of the entry was taken. The session denies sending until its sendPolicy is set again.";
  return createFinding("ENTRY_UNREADABLE", message, { path: folder.entriesLog, key: row.key, repaired: true });
}

/** Rewrites the entries log without its damaged lines, after a copy of it is on the disk. A purge deletes that copy. */
async function rewriteLog(
  context: StoreContext,
  { folder, log }: AgentSessionFiles,
  signal: AbortSignal | undefined,
): Promise<Finding> {
  const { files, locks, clock } = context;
  const path = folder.entriesLog;
  const keptAt = `${folder.torn}/entries.log.${clock.nowMs()}.repaired`;
  const rewrite = (): void => {
    log.refreshHeld();
    makeFolders(files, folder.torn);
    const sizeBytes = files.facts(path)?.sizeBytes ?? 0;
    withFileErrors(keptAt, () => writeWhole(context, keptAt, bytesOf(context, path, [{ byteOffset: 0, sizeBytes }])));
    flushFolder(files, folder.torn);
    log.rewrite([...log.removed]);
  };
  await locks.hold([folder.entriesLock], rewrite, { signal });
  const message = `The entries log was written again without its damaged lines; ${quote(keptAt)} has it as it was.`;
  return createFinding("CHECKSUM_MISMATCH", message, { path, repaired: true });
}

function prepareFolder({ context: { files, clock } }: MaintenanceContext, agent: AgentSessionFiles): void {
  agent.prepareWriting();
  removeAbandoned(files, agent.folder.repaired, clock.nowMs());
}

async function* repairSession(
  scope: MaintenanceContext,
  agent: AgentSessionFiles,
  row: SessionRow,
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding> {
  for (;;) {
    const findings = await repairOnce(scope, agent, row, signal);
    if (findings !== null) return yield* findings;
  }
}

/**
 * Returns null when the transcript was redacted or purged meanwhile, because the copy would contain the removed text.
 */
async function repairOnce(
  scope: MaintenanceContext,
  agent: AgentSessionFiles,
  row: SessionRow,
  signal: AbortSignal | undefined,
): Promise<readonly Finding[] | null> {
  const { files } = scope.context;
  const path = agent.folder.session(agent.fileNameOf(row));
  // The open descriptor keeps the inode from being reused, so an equal identity means the same file.
  const pin = openIfThere(files, path);
  if (pin === null) return [];
  try {
    const { identity } = withFileErrors(path, () => files.factsOf(pin));
    const isSame = (): boolean => files.facts(path)?.identity === identity;
    try {
      return await repairFile(scope, agent, row, { path, isSame }, signal);
    } catch (error) {
      if (isSame()) throw error;
      return null;
    }
  } finally {
    files.close(pin);
  }
}

async function repairFile(
  scope: MaintenanceContext,
  agent: AgentSessionFiles,
  row: SessionRow,
  { path, isSame }: { readonly path: string; isSame(): boolean },
  signal: AbortSignal | undefined,
): Promise<readonly Finding[] | null> {
  const { context } = scope;
  const { files, locks, clock, random } = context;
  const { repaired: folder, sessions } = agent.folder;
  const fileName = path.slice(sessions.length + 1);
  const copy = `${folder}/${fileName}`;
  const target = targetOf(scope, agent, row, path, false, signal);
  // Another process may repair the same file, so the name is random.
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
    if (!(await locks.hold([agent.folder.sessionLock(row.sessionId)], keep, { signal }))) return null;
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
  writeWhole(context, next, bytesOf(context, path, changes));
  keepEarlier(files, copy, next);
  files.rename(next, removed);
  const report = { path, copy, removed, atMs: clock.nowMs(), changes: withPlaces(changes), findings };
  writeWhole(context, `${copy}.report.json`, [Buffer.from(`${JSON.stringify(report, null, 2)}\n`)]);
  files.rename(temporary, copy);
  flushFolder(files, folderOf(copy));
}

/**
 * Keeps the removed lines of an earlier repair, and its report, under new names. If that repair's copy has replaced the
 * original, the lines exist nowhere else. Identical lines are not kept twice.
 */
function keepEarlier(files: Files, copy: string, next: string): void {
  const removed = `${copy}.removed`;
  if (files.facts(removed) === null || isSameText(files, removed, next)) return;
  let count = 1;
  while (files.facts(`${removed}.${count}`) !== null) count++;
  for (const name of [removed, `${copy}.report.json`])
    if (files.facts(name) !== null) files.rename(name, `${name}.${count}`);
}

/** Compares in parts, because a removed line may have any length. */
function isSameText(files: Files, one: string, other: string): boolean {
  const handles = [one, other].map((path) => openIfThere(files, path)).filter((handle) => handle !== null);
  const [first, second] = handles;
  try {
    for (let from = 0; first !== undefined && second !== undefined; from += copyBytes) {
      const part = readRange(files, first, from, from + copyBytes);
      if (Buffer.compare(part, readRange(files, second, from, from + copyBytes)) !== 0) return false;
      if (part.length < copyBytes) return true;
    }
    return false;
  } finally {
    for (const handle of handles) files.close(handle);
  }
}

function withPlaces(changes: readonly RepairedLine[]): readonly unknown[] {
  let removedOffset = 0;
  return changes.map((change) => {
    const place = { ...change, removedOffset };
    removedOffset += change.sizeBytes;
    return place;
  });
}

type Part = Pick<RepairedLine, "byteOffset" | "sizeBytes">;

function* bytesOf({ files }: StoreContext, path: string, parts: readonly Part[]): Generator<Uint8Array> {
  const handle = openIfThere(files, path);
  if (handle === null) throw refused("STORE_CORRUPT", `The file ${quote(path)} is gone.`, { path });
  try {
    for (const { byteOffset, sizeBytes } of parts)
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
