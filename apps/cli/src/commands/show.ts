import {
  BranchWalk,
  earlierSessions,
  followRecords,
  loadExisting,
  messageRole,
  resolveSession,
} from "@throughline/core/internal";
import { readRecords, withinMemory } from "@throughline/core/internal/node";
import { readWindow } from "@throughline/core";
import type { SessionHead, SessionRef, SessionState, SessionStore, StoredRecord } from "@throughline/core";
import type { CommandContext, CommandInput } from "../command.ts";
import { isBoundary, isChosen, readTail, type RecordSelection, selectRecords } from "@throughline/history/internal";
import { grouped } from "../counted.ts";
import { currentHeading, earlierHeading } from "../earlier-sessions.ts";
import { usageError } from "../error-report.ts";
import { showFiles } from "../show-files.ts";
import { showPlace } from "../show-place.ts";
import { showRecord } from "../show-record.ts";
import { terminalSafeLine } from "../terminal-safe.ts";

interface ShowOptions {
  readonly files?: boolean;
  readonly tail?: number;
  readonly at?: number;
  readonly link?: boolean;
  readonly afterSeq?: number;
  readonly role?: string;
  readonly follow?: boolean;
  readonly all?: boolean;
  readonly allBranches?: boolean;
  readonly raw?: boolean;
}

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as ShowOptions;
  const { output, scope, signal } = context;
  assertTogether(options);
  const store = await context.openStore("read");
  const found = await resolveSession(store, input.arguments[0] ?? "", scope, { signal });
  const { ref } = found;
  if (options.link === true) {
    const { showLink } = await import("../page/show-link.ts");
    await showLink(context, store, found, options.at ?? null);
    return 0;
  }
  if (options.files === true) {
    await showFiles(context, store, ref);
    return 0;
  }
  if (options.at !== undefined) {
    const place = { seq: options.at, hasSideRecords: options.allBranches === true, isRaw: options.raw === true };
    const shown = await showPlace(context, store, ref, place);
    if (output.isJson) await output.end(shown);
    return 0;
  }
  const selection: RecordSelection = {
    isAll: options.all === true,
    isAllBranches: options.allBranches === true,
    afterSeq: options.afterSeq ?? 0,
    role: options.role ?? null,
    tail: options.tail ?? null,
  };
  const state = await loadExisting(store, ref);
  const { head } = state;
  if (isWhole(selection) && !output.isJson && options.raw !== true)
    await showEarlierSessions(context, store, state, selection);
  let count = 0;
  let firstSeq: number | null = null;
  for await (const stored of chosenRecords(store, ref, head, selection, signal)) {
    count += 1;
    firstSeq ??= stored.seq;
    await showRecord(context, stored, options.raw === true);
  }
  if (isWindow(selection) && firstSeq !== null && firstSeq > 2 && !output.isJson)
    output.note(
      `${grouped(firstSeq - 1)} earlier records are not shown. See them: \`throughline show ${ref.key} --all\``,
    );
  if (options.follow === true) {
    await output.flush();
    await follow(
      context,
      store,
      ref,
      { ...selection, afterSeq: Math.max(head.lastSeq, selection.afterSeq) },
      options.raw === true,
    );
  } else if (output.isJson) await output.end(count);
  return 0;
}

/** @throws {ThroughlineError} USAGE for options that choose different records */
function assertTogether(options: ShowOptions): void {
  const excluded = [
    ...(options.tail === undefined ? [] : ["--tail"]),
    ...(options.afterSeq === undefined ? [] : ["--after-seq"]),
    ...(options.role === undefined ? [] : ["--role"]),
    ...(options.follow === true ? ["--follow"] : []),
  ];
  if (options.at !== undefined && excluded[0] !== undefined)
    throw usageError(`--at shows a record with its neighbors; it does not go with ${excluded[0]}.`);
  const other = options.files === true ? "--files" : excluded[0];
  if (options.link === true && other !== undefined)
    throw usageError(`--link prints an address; it does not go with ${other}.`);
  const beside = options.at === undefined ? excluded[0] : "--at";
  if (options.files === true && beside !== undefined)
    throw usageError(`--files lists the files of the whole session; it does not go with ${beside}.`);
}

/** True if the whole session is requested; only then do earlier sessions from before a reset belong to the output. */
function isWhole({ isAll, afterSeq, tail }: RecordSelection): boolean {
  return isAll && afterSeq === 0 && tail === null;
}

async function showEarlierSessions(
  context: CommandContext,
  store: SessionStore,
  current: SessionState,
  selection: RecordSelection,
): Promise<void> {
  const { output, signal } = context;
  const earlier = await Array.fromAsync(earlierSessions(store, current, signal));
  for (const one of earlier.toReversed()) {
    await output.line({ text: terminalSafeLine(earlierHeading(one)), style: "bold" });
    await output.line("");
    if (one.state === null) continue;
    for await (const stored of chosenRecords(store, one.state.ref, one.state.head, selection, signal))
      await showRecord(context, stored, false);
  }
  if (earlier.length === 0) return;
  await output.line({ text: currentHeading(current.sessionId), style: "bold" });
  await output.line("");
}

/** True without options: the output then covers the context's window only. */
function isWindow({ isAll, isAllBranches, afterSeq, role, tail }: RecordSelection): boolean {
  return !isAll && !isAllBranches && afterSeq === 0 && role === null && tail === null;
}

/** Stops at the head's `lastSeq`, because `--follow` prints later records. */
async function* chosenRecords(
  store: SessionStore,
  ref: SessionRef,
  head: SessionHead,
  selection: RecordSelection,
  signal: AbortSignal,
): AsyncGenerator<StoredRecord, void, void> {
  const { isAll, isAllBranches, tail, afterSeq } = selection;
  const { headId, lastSeq } = head;
  const everything = { afterSeq, beforeSeq: lastSeq + 1, signal };
  if (tail === null && isAllBranches) {
    for await (const { records } of store.read(ref, everything))
      yield* records.filter((record) => isChosen(record, selection, roleOf));
  } else if (tail !== null || afterSeq > 0) {
    const query = { head, selection: { ...selection, tail: tail ?? Number.POSITIVE_INFINITY }, roleOf };
    yield* await readTail(withinMemory(store), ref, query, signal);
  } else if (lastSeq >= longSession && (await isOneBranch(store, ref, head, isAll, signal))) {
    for await (const { records } of store.read(ref, everything))
      yield* records.filter((record) => !record.side && isChosen(record, selection, roleOf));
  } else if (isAll) {
    const records = (await readRecords(store, ref, signal)).filter(({ seq }) => seq <= lastSeq);
    yield* selectRecords(records, headId, selection, roleOf);
  } else {
    const { state, records } = await readWindow(withinMemory(store), ref, { signal });
    yield* selectRecords(records, state.head.headId, selection, roleOf);
  }
}

/** From this size on, the record heads are read first to check whether the records can be streamed. */
const longSession = 10_000;

/**
 * True if every main record is on the head's branch, each behind its parent, and no window leaves a record out. The
 * records can then be streamed without building the branch in memory.
 */
async function isOneBranch(
  store: SessionStore,
  ref: SessionRef,
  { headId, lastSeq, windowSeq }: SessionHead,
  isAll: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  if (!isAll && windowSeq !== null && windowSeq > 1) return false;
  const walk = new BranchWalk(headId);
  const range = { order: "descending", beforeSeq: lastSeq + 1, payload: "head", signal } as const;
  for await (const { records } of store.read(ref, range))
    for (const stored of records) {
      if (stored.side) continue;
      if (!walk.take(stored) || (!isAll && isBoundary(stored))) return false;
    }
  return walk.isAtRoot;
}

function roleOf({ record }: StoredRecord): string | null {
  return messageRole(record);
}

/** Prints side records only with `--all-branches`. */
async function follow(
  context: CommandContext,
  store: SessionStore,
  ref: SessionRef,
  { afterSeq, role, isAllBranches }: RecordSelection,
  isRaw: boolean,
): Promise<void> {
  const { output, signal } = context;
  for await (const records of followRecords(store, ref, { afterSeq, signal })) {
    for (const stored of records) {
      if (role !== null && messageRole(stored.record) !== role) continue;
      if (isAllBranches || !stored.side) await showRecord(context, stored, isRaw);
    }
    await output.flush();
  }
}
