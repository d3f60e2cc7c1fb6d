import { forkSession, patchEntry, splitBlobs, type SplitEntry, updateEntry } from "@throughline/core/internal";
import type { Finding, SessionRef, SessionState } from "@throughline/core";
import { followArchive } from "./follow-archive.ts";
import type { FoundHandOff } from "./handed-off.ts";
import { heldPart, lostRecords } from "./held-part.ts";
import { isPutAside, sourceReplaced } from "./import-refusals.ts";
import { receiptOf, type ImportReceipt } from "./import-receipt.ts";
import type { ImportOptions, ImportSource } from "./import-types.ts";
import { createImportedSession, firstReceipt, headerFolder, spawnFields } from "./imported-session.ts";
import { redactCopies, redactionsIn, type Redactions } from "./kept-redactions.ts";
import type { SourceFile } from "./node/source-files.ts";
import { type ReadStart, SourceReading } from "./read-source.ts";
import { goesOnBehind, isAsLeft, type KeptReading } from "./kept-readings.ts";
import { SessionWriter } from "./session-writer.ts";
import { findTarget, type ImportPlaces, type ImportTarget, leftAloneFinding } from "./target-session.ts";
import type { TranscriptSource } from "./transcript-source.ts";

/** Imports one transcript: finds its session, reads what that does not hold yet, and writes it batch by batch. */
export async function importTranscript(
  places: ImportPlaces,
  source: TranscriptSource,
  options: ImportOptions,
): Promise<ImportSource> {
  const target = await findTarget(places, source, options);
  if (target.leftAlone !== null) {
    const finding = leftAloneFinding(source, target.ref.key, target.leftAlone);
    const session = { ref: target.ref, sessionId: source.sessionId, state: "skipped" } as const;
    return resultOf({ source, target, isDryRun: options.dryRun === true }, session, [finding]);
  }
  if (target.found !== null) places.claims.take(target.found.state, source);
  const file = source.open === null ? null : await source.open();
  try {
    const found: PlacedSource = { places, source, target, options, file, sizeBytes: file?.sizeBytes ?? 0 };
    const isFork = target.handOff !== null && options.dryRun !== true;
    return await importFound(found, isFork ? await forkHandOff(found, target.handOff) : await beginSession(found));
  } finally {
    await file?.close();
  }
}

/**
 * Imports what a file gained behind a kept reading. Returns null when the file or its session is not as the reading left
 * it. The file then has to be read from its start.
 */
export async function continueTranscript(
  places: ImportPlaces,
  kept: KeptReading,
  options: ImportOptions,
): Promise<ImportSource | null> {
  const { source, ref, receipt } = kept;
  const state = await places.store.load(ref);
  if (state === null || source.open === null || !isAsLeft(state, kept)) return null;
  const file = await source.open();
  try {
    if (!(await goesOnBehind(file, kept))) return null;
    const { sizeBytes } = file;
    const same = { state, receipt, isSame: true, hasNewHead: false, sourceBytes: sizeBytes };
    const nothing = { leftAlone: null, handOff: null, others: [], refusedKey: null, findings: [] };
    const found = { places, source, target: { ...nothing, ref, found: same }, options, file, sizeBytes };
    places.claims.take(state, source);
    const begun = { state, receipt, isFresh: false, isWhole: false, split: null, findings: [] };
    return await importFound(found, begun, kept.reading);
  } finally {
    await file.close();
  }
}

/** Holds a source and the place of its session, as the search found them. */
interface PlacedSource {
  readonly places: ImportPlaces;
  readonly source: TranscriptSource;
  readonly target: ImportTarget;
  readonly options: ImportOptions;
  /** Null when the index names a file that does not exist. */
  readonly file: SourceFile | null;
  readonly sizeBytes: number;
}

/** Holds the session that takes the source, before anything of this run is in it. */
interface BegunSession {
  /** Null for a dry run that would create the session. */
  readonly state: SessionState | null;
  /** Counts what the session holds. */
  readonly receipt: ImportReceipt;
  /** True if nothing was imported before. */
  readonly isFresh: boolean;
  /** True if the session holds all of the source. */
  readonly isWhole: boolean;
  /** Holds the large fields of the index's entry, which become records of the first batch; null when it has none. */
  readonly split: SplitEntry<Readonly<Record<string, unknown>>> | null;
  readonly findings: readonly Finding[];
}

/**
 * Creates the session of a new source, and checks that an earlier one can take the rest.
 * @throws {ThroughlineError} SOURCE_CHANGED, SESSION_ARCHIVED, STORE_CORRUPT
 */
async function beginSession(found: PlacedSource): Promise<BegunSession> {
  const { places, source, target, options, file, sizeBytes } = found;
  const { store } = places;
  const state = target.found?.state ?? null;
  const { handOff } = target;
  const first =
    handOff === null ? firstReceipt(source, target.refusedKey, options.key) : receiptOfHandOff(source, handOff);
  const receipt = target.found?.receipt ?? first;
  const place = { path: source.path, key: target.ref.key };
  const isFresh = state === null || (receipt.sizeBytes === 0 && state.head.headId === null && sizeBytes > 0);
  if (target.found?.isSame === false) throw sourceReplaced(place, receipt.sizeBytes, sizeBytes);
  // An import restarts behind the records that the session still holds, so that records lost since are there again.
  const held = await heldPart({ store, source, file, state, receipt });
  const findings = held === null ? [] : [held.finding];
  const begun = { state, receipt: held?.receipt ?? receipt, isFresh, findings };
  const isWhole = state !== null && begun.receipt.sizeBytes === sizeBytes;
  if (!isWhole && state?.archived === true) throw isPutAside(place);
  const isBegun = begun.receipt.lineCount > 0 || begun.receipt.notes !== undefined;
  if (isBegun || options.dryRun === true || state?.archived === true) return { ...begun, isWhole, split: null };
  // A Throughline store has already moved its large fields into records, and its seq numbers must stay.
  const mostBytes = source.own === null ? store.capabilities.limits.batchBytes / 8 : 0;
  const split = splitBlobs(source.entry ?? {}, mostBytes);
  return state === null ? createSession(found, begun, split) : { ...begun, isWhole, split };
}

/** Counts the lines of a hand-off as imported, because the session that was handed off has their records. */
function receiptOfHandOff(source: TranscriptSource, { handedOff }: FoundHandOff): ImportReceipt {
  const { sizeBytes, sha256, lineCount, lastSeq, headId } = handedOff;
  const counts = { sizeBytes, sha256, lineCount, recordCount: lastSeq, headId, isPartial: true } as const;
  return { ...firstReceipt(source, null, undefined), ...counts, handOff: { lineCount, headId } };
}

/** Creates the fork that takes what a program added to a hand-off. It shares the records that were handed off. */
async function forkHandOff({ places, source, target }: PlacedSource, handOff: FoundHandOff): Promise<BegunSession> {
  const { store, claims } = places;
  const receipt = receiptOfHandOff(source, handOff);
  const { ref, entry } = handOff.state;
  const held = await store.load(target.ref);
  const fork = { sessionId: source.sessionId, atSeq: handOff.handedOff.lastSeq };
  // An interrupted import may have created the fork, and a store that copies may not have finished it.
  const isWhole = held !== null && held.entry["forkIncomplete"] !== true;
  const forked = isWhole ? held : await forkSession(store, ref, target.ref, fork);
  const program = source.foreign?.program ?? source.format;
  const names = Object.fromEntries(
    Object.entries({ title: entry.title, label: entry.label }).flatMap(([field, name]) =>
      name === undefined ? [] : [[field, `${name} (${program})`]],
    ),
  );
  const { cwd, titleBy } = entry;
  const taken = {
    ...headerFolder(source),
    ...(cwd === undefined ? {} : { cwd }),
    ...(titleBy === undefined ? {} : { titleBy }),
  };
  const fields = { ...taken, ...names, importedFrom: receipt };
  const state = await updateEntry(store, forked.ref, (before) => patchEntry(before, fields));
  claims.take(state, source);
  return { state, receipt, isFresh: true, isWhole: false, split: null, findings: [] };
}

async function createSession(
  { places, source, target, file, sizeBytes }: PlacedSource,
  begun: Omit<BegunSession, "isWhole" | "split">,
  split: SplitEntry<Readonly<Record<string, unknown>>>,
): Promise<BegunSession> {
  const { store, claims } = places;
  const receipt = sizeBytes > 0 ? { ...begun.receipt, isPartial: true as const } : begun.receipt;
  const entryFields = { ...headerFolder(source), ...(await spawnFields(store, source, target.ref)), ...split.entry };
  const state = await createImportedSession(store, target.ref, source, { entryFields, receipt, file });
  claims.take(state, source);
  return { ...begun, state, receipt, isWhole: false, split };
}

async function importFound(
  found: PlacedSource,
  begun: BegunSession,
  kept: SourceReading | null = null,
): Promise<ImportSource> {
  const { places, source, target, options } = found;
  const { ref } = target;
  const isDryRun = options.dryRun === true;
  const redactions = await redactionsIn(places.store, target.others);
  const start = readStart(found, begun, redactions);
  const reading = kept === null ? new SourceReading(start) : kept.continueFrom(start);
  const writer = writerOf(found, begun);
  const receipt = await writeBatches(found, begun, { reading, writer });
  const saved = source.own?.savedHead ?? null;
  // A Throughline store may have moved the head without a record, so the saved head is restored.
  if (!begun.isWhole && saved?.lastSeq === reading.recordCount && !isDryRun)
    await writer.moveHead(saved.headId, receipt);
  if (redactions.size > 0 && !isDryRun) await redactCopies(places.store, ref, redactions);
  const archived = await archive(found, begun, { writer, receipt });
  const isMoved = target.found !== null && archived.ref !== ref;
  const state = begun.isFresh ? "imported" : begun.isWhole && !isMoved ? "unchanged" : "grown";
  const session = { ref: archived.ref, sessionId: begun.state?.sessionId ?? source.sessionId, state } as const;
  const findings = [...begun.findings, ...archived.findings, ...reading.findings];
  const isRead = !begun.isWhole && !isDryRun && target.others.length === 0;
  if (isRead && found.file !== null)
    await places.readings?.keep({ source, ref, sessionId: session.sessionId, receipt, reading }, found.file);
  return resultOf({ source, target, isDryRun }, session, findings, reading);
}

function readStart(found: PlacedSource, begun: BegunSession, redactions: Redactions): ReadStart {
  const { places, source, target, options, sizeBytes } = found;
  const { state, receipt, split } = begun;
  return {
    store: places.store,
    source,
    ref: target.ref,
    state,
    isBegunBefore: target.found !== null,
    receipt,
    hasNewHead: target.found?.hasNewHead === true,
    notes: split?.drafts ?? [],
    redactions,
    sourceBytes: sizeBytes,
    signal: options.signal,
  };
}

function writerOf({ places, source, target, options }: PlacedSource, begun: BegunSession): SessionWriter {
  const { state, receipt, split } = begun;
  const { ref, found } = target;
  const heldSeq = found !== null && lostRecords(found.state, found.receipt) > 0 ? found.state.head.lastSeq : null;
  const isBegunBefore = found !== null;
  return new SessionWriter(places.store, {
    ref,
    path: source.path,
    state,
    receipt,
    heldSeq,
    isBegunBefore,
    options,
    split,
  });
}

/** Returns the receipt that the session holds at the end; with a dry run, the one that it would hold. */
async function writeBatches(
  { source, target, options, file, sizeBytes }: PlacedSource,
  begun: BegunSession,
  { reading, writer }: { readonly reading: SourceReading; readonly writer: SessionWriter },
): Promise<ImportReceipt> {
  let { receipt } = begun;
  let records = 0;
  const report = (readBytes: number): void => {
    // A file that grows while it is read may be larger than it was at the start.
    const size = Math.max(readBytes, sizeBytes);
    options.onProgress?.({ path: source.path, key: target.ref.key, readBytes, sizeBytes: size, records });
  };
  const isRead = !begun.isWhole && file !== null;
  for await (const batch of isRead ? reading.batches(file) : reading.notesAlone()) {
    if (options.dryRun !== true) receipt = await writer.write(batch);
    else {
      if (records === 0 && batch.drafts.length > 0) await writer.assertNotGoneOn(batch.headBefore);
      ({ receipt } = batch);
    }
    records += batch.records;
    report(batch.receipt.sizeBytes);
  }
  if (isRead && options.dryRun !== true) await writer.stateWindow(reading.headId, reading.movesWindow);
  if (isRead) report(sizeBytes);
  return receipt;
}

/** Archives the session of an archived source. Returns the place of the session then. */
async function archive(
  { places, source, target, options }: PlacedSource,
  { state }: BegunSession,
  { writer, receipt }: { readonly writer: SessionWriter; readonly receipt: ImportReceipt },
): Promise<{ readonly ref: SessionRef; readonly findings: readonly Finding[] }> {
  const { ref, found } = target;
  if (!source.isArchived || options.dryRun === true || state?.archived === true) return { ref, findings: [] };
  const before = found === null ? null : receiptOf(found.state.entry);
  const archived = await followArchive({ store: places.store, source, ref, receipt, before, writer });
  return { ref: archived.state?.ref ?? ref, findings: archived.finding === null ? [] : [archived.finding] };
}

const nothingRead = { lines: 0, records: 0, derived: 0, repaired: 0, lost: [] };

function resultOf(
  {
    source,
    target,
    isDryRun,
  }: { readonly source: TranscriptSource; readonly target: ImportTarget; readonly isDryRun: boolean },
  {
    ref,
    sessionId,
    state,
  }: { readonly ref: SessionRef; readonly sessionId: string; readonly state: ImportSource["state"] },
  findings: readonly Finding[],
  { lines, records, derived, repaired, lost }: Pick<ImportSource, keyof typeof nothingRead> = nothingRead,
): ImportSource {
  return {
    path: source.path,
    format: source.format,
    key: ref.key,
    agentId: ref.agentId,
    sessionId,
    state,
    archived: ref.archiveId !== undefined || (isDryRun && source.isArchived),
    lines,
    records,
    derived,
    repaired,
    lost,
    findings: [...source.findings, ...target.findings, ...findings],
    error: null,
  };
}
