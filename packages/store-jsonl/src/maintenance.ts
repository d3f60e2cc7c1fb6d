import { setImmediate as pause } from "node:timers/promises";
import {
  assertPurges,
  assertStoreOptions,
  createFinding,
  quote,
  type RebuiltFile,
  type StoreMethodName,
} from "@throughline/core/internal";
import type { Finding, MaintenanceFacet } from "@throughline/core";
import { createLineSplitter } from "@throughline/openclaw-format";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { fileError, openIfThere, readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { isUnfinished } from "./find-sessions.ts";
import { damagedFinding } from "./keep-damaged-view.ts";
import { entryOf, unlessUndecodable } from "./undecodable-entry.ts";
import { pastUnreadable, targetOf, type MaintenanceContext } from "./maintenance-context.ts";
import { stalePartials } from "./stale-partials.ts";
import { addPurges, purgesOf } from "./carried-purges.ts";
import { repairStore } from "./repair-store.ts";
import { decodePatch, type SessionRow } from "./session-row.ts";
import { TranscriptEnd } from "./transcript-end.ts";
import { ParentSurvey, surveyLines, type SurveyedLine, type SurveyTarget } from "./transcript-survey.ts";
import { unreadableFinding } from "./transcript-findings.ts";
import { logLineFinding, readLogLine } from "./log-image.ts";
import { backupStore } from "./backup-store.ts";

export function createMaintenance(scope: MaintenanceContext): MaintenanceFacet {
  return {
    verify: (options = {}) => checked(scope, "verify", options, () => verifyStore(scope, options)),
    repair: (options = {}) => checked(scope, "repair", options, () => repairStore(scope, options)),
    rebuild: (options = {}) => checked(scope, "rebuild", options, () => rebuildStore(scope, options)),
    backup: (path, options = {}) =>
      scope.track(async () => {
        assertStoreOptions("backup", options);
        scope.begin(options.signal);
        try {
          return await backupStore(scope, path, options.signal);
        } catch (error) {
          throw ourError(error, path);
        }
      }),
    purges: (options = {}) => checked(scope, "purges", options, () => purgesOf(scope, options)),
    addPurges: (namespace, purges) =>
      scope.track(async () => {
        assertPurges(namespace, purges);
        scope.begin();
        for (const [agentId, added] of Map.groupBy(purges, (purge) => purge.agentId))
          await addPurges(scope.context, scope.agentAt({ namespace, agentId }), added);
      }),
  };
}

async function* checked<T>(
  scope: MaintenanceContext,
  method: StoreMethodName,
  options: { readonly signal?: AbortSignal | undefined },
  results: () => AsyncGenerator<T>,
): AsyncGenerator<T> {
  assertStoreOptions(method, options);
  scope.begin(options.signal);
  yield* inSteps(scope, withOurErrors(scope, results()));
}

/** Makes `close` wait for the running step. Otherwise the step would reopen files that `close` has closed. */
async function* inSteps<T>(scope: MaintenanceContext, results: AsyncGenerator<T>): AsyncGenerator<T> {
  try {
    for (;;) {
      const step = await scope.track(() => results.next());
      if (step.done === true) return;
      yield step.value;
      scope.begin();
    }
  } finally {
    await results.return(undefined);
  }
}

async function* withOurErrors<T>({ context }: MaintenanceContext, results: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* results;
  } catch (error) {
    throw ourError(error, context.root);
  }
}

/** Converts only errors with a system code such as EIO, because others are not the disk's. */
function ourError(error: unknown, path: string): unknown {
  const { code = "" } = error as NodeJS.ErrnoException;
  return /^E[A-Z0-9]+$/.test(code) ? fileError(error, path, "unknown") : error;
}

async function* rebuildStore(
  { agents, begin, rebuild }: MaintenanceContext,
  { signal }: { readonly signal?: AbortSignal | undefined },
): AsyncGenerator<RebuiltFile> {
  begin(signal);
  for (const agent of agents()) {
    for (const path of await rebuild(agent)) yield { path, sessions: agent.log.rows.size };
    begin(signal);
  }
}

async function* verifyStore(
  scope: MaintenanceContext,
  { full = false, signal }: { readonly full?: boolean | undefined; readonly signal?: AbortSignal | undefined },
): AsyncGenerator<Finding> {
  scope.begin(signal);
  for (const agent of scope.agents()) {
    yield* verifyLog(scope, agent, signal);
    agent.log.refresh();
    for (const row of agent.log.rows.values().toArray()) {
      scope.begin(signal);
      const path = agent.folder.session(agent.fileNameOf(row));
      yield* entryFindings(row, { path: agent.folder.entriesLog, key: row.key }, () => entryOf(row));
      yield* pastUnreadable(verifySession(scope, agent, row, full, signal), { path, key: row.key });
    }
    for (const { finding } of stalePartials(agent)) yield finding;
    yield* verifyFolder(scope, agent);
    yield* verifyAccess(scope, agent);
  }
}

function entryFindings(
  { key }: SessionRow,
  place: Parameters<typeof createFinding>[2],
  decode: () => unknown,
): readonly Finding[] {
  return unlessUndecodable(
    () => (decode(), []),
    ({ message }) => [createFinding("STORE_DAMAGED", `The entry of ${quote(key)}: ${message}`, place)],
  );
}

async function* verifyLog(
  { context, begin }: MaintenanceContext,
  { folder, address }: AgentSessionFiles,
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding> {
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
        const finding = logLineFinding(readLogLine(split.bytes, codec, address), place);
        if (finding !== null) yield finding;
      }
      position += bytes.length;
      await pause();
      begin(signal);
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
  scope: MaintenanceContext,
  agent: AgentSessionFiles,
  row: SessionRow,
  isFull: boolean,
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding> {
  const path = agent.folder.session(agent.fileNameOf(row));
  const { key } = row;
  if (scope.context.files.facts(path) === null) {
    if (row.isUnflushed === true) return;
    yield createFinding("SESSION_FILE_MISSING", "The transcript of the session is not there.", { path, key });
    return;
  }
  const findings: Finding[] = [];
  const parents = new ParentSurvey();
  const end = new TranscriptEnd();
  const target = targetOf(scope, agent, row, path, isFull, signal);
  for await (const line of surveyLines(target, (finding) => void findings.push(finding))) {
    const { record } = line.read;
    const kept = record["firstKeptEntryId"];
    if (
      record.type === "compaction" &&
      typeof kept === "string" &&
      // A compaction that names its own id keeps no earlier record, so its reference is valid.
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
    findings.push(...patchFindings(target, row, line));
    parents.add(record);
    findings.push(...end.take(target, line));
    // A torn last line is reported by `end`, because the text depends on whether the line was acknowledged.
    yield* findings.splice(0).filter(({ code }) => code !== "TAIL_TORN");
  }
  yield* findings.filter(({ code }) => code !== "TAIL_TORN");
  yield* end.findings(target);
  const cycles = parents.cycles();
  if (cycles.size > 0) yield* cycleFindings(target, cycles);
}

function patchFindings(
  { path, owner, codec }: SurveyTarget,
  row: SessionRow,
  { line, byteOffset, envelope, read }: SurveyedLine,
): readonly Finding[] {
  if (envelope?.entryEnc === undefined || (envelope.revision ?? 0) <= row.revision) return [];
  const place = { path, key: row.key, line, byteOffset, recordId: read.record.id };
  return entryFindings(row, place, () => decodePatch(codec.coder, envelope, owner.ref, owner.sessionId));
}

/**
 * Reads the transcript a second time. Cycles are rare, and keeping the position of every record would cost memory for
 * nothing.
 */
async function* cycleFindings(target: SurveyTarget, cycles: ReadonlySet<string>): AsyncGenerator<Finding> {
  const { path, owner } = target;
  for await (const { line, byteOffset, read } of surveyLines(target, () => undefined)) {
    const { id: recordId } = read.record;
    if (!cycles.has(recordId)) continue;
    const place = { path, key: owner.ref.key, line, byteOffset, recordId };
    yield createFinding("PARENT_CYCLE", "The record's parents lead back to itself.", place);
  }
}

function* verifyFolder({ context }: MaintenanceContext, agent: AgentSessionFiles): Generator<Finding> {
  const { files } = context;
  const { sessions, sessionsJson } = agent.folder;
  if (files.facts(sessions) === null) return;
  const known = agent.log.image.fileNames();
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
  agent.mirror.entries();
  if (!agent.mirror.isReadable) yield damagedFinding(sessionsJson);
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

/** Reports folders that others can read. The next write tries to make them private. */
function* verifyAccess({ context: { files } }: MaintenanceContext, { folder }: AgentSessionFiles): Generator<Finding> {
  for (const path of [folder.agent, folder.sessions, folder.own, folder.torn, folder.repaired]) {
    const facts = files.facts(path);
    if (facts !== null && !facts.isPrivate)
      yield createFinding("FOLDER_EXPOSED", "Others than its owner may look into the folder.", { path });
  }
}
