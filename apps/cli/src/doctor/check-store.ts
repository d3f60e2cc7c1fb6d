import { createFinding } from "@throughline/core/internal";
import { hasErrorCode } from "@throughline/core";
import type { Finding, ListQuery, SessionStore } from "@throughline/core";
import { inspectStore, sessionsOf } from "@throughline/transfer/internal";
import { inspectStoreFolder, inspectStoreSize } from "./inspect-store-folder.ts";
import { NewFindings } from "./new-findings.ts";

/** Counts the content of a repaired copy. Records that a fork shares with its origin count in both sessions. */
interface RepairedCopy {
  /** States the path of the copy. */
  readonly path: string;
  /** Counts the sessions in the copy. */
  readonly sessions: number;
  /** Counts the records in the copy, without the notes. */
  readonly records: number;
  /** Counts the notes that replace records which could not be read. */
  readonly notes: number;
}

/** Receives the results of a check while it runs. */
interface StoreCheckListener {
  /**
   * Receives findings that were not reported before; the list may be empty. The check waits for the returned promise.
   */
  onFindings(findings: readonly Finding[]): Promise<void>;
  /** Receives the copy that a repair wrote, after it was opened and counted. */
  onCopy(copy: RepairedCopy): void;
  /**
   * Reports that a repair was requested for a store that cannot be repaired. `name` is the name in the store's
   * capabilities.
   */
  onNoRepair(name: string): void;
}

/** Holds the options of `checkStore`. */
export interface CheckStoreOptions {
  /** Opens the store. The check calls it once; the caller closes the store. */
  open(onFinding: (finding: Finding) => void): Promise<SessionStore>;
  /** Opens the copy that a repair wrote. The check closes it. */
  openCopy(path: string): Promise<SessionStore>;
  /** States the file of a store that is one file; null for any other store. */
  readonly path: string | null;
  /** States the folder of a JSON Lines store, to check its files as well; null skips the files. */
  readonly folder: string | null;
  /** Copies the readable part of a damaged store to a new file, or repairs a store in place. */
  readonly isRepair: boolean;
  /** Selects the sessions whose records are checked. */
  readonly query: ListQuery;
  /** Ends the check before the next step. */
  readonly signal: AbortSignal;
}

/** Reports the outcome of a check. */
export interface StoreCheck {
  /** States whether errors were found that no repair fixed. */
  readonly isDamaged: boolean;
  /** States whether one of these errors is in a file that can be repaired. */
  readonly isRepairable: boolean;
  /** States whether a repair was requested but saved nothing of a damaged store. */
  readonly isRepairFailed: boolean;
}

/** Records under these codes are lost from the log. No file holds them, so a repair cannot restore them. */
const logCodes: ReadonlySet<string> = new Set(["LOG_DAMAGED", "LOG_MISSING"]);

/**
 * Checks a store, and repairs it on request. Each loss is reported once, whichever check finds it first. Damage ends
 * only the step that met it.
 * @throws {ThroughlineError} STORE_FOREIGN for the database of another program, ABORTED, and any error of opening the
 * store
 */
export async function checkStore(options: CheckStoreOptions, listener: StoreCheckListener): Promise<StoreCheck> {
  const { path, folder, isRepair, query, signal } = options;
  const newFindings = new NewFindings();
  // The store reports damage that it notices during reads through this callback. Its own check may report the same
  // damage again.
  let noticed: Finding[] = [];
  let isDamaged = false;
  let isRepairable = false;
  const take = async (found: readonly Finding[]): Promise<void> => {
    const fresh = newFindings.pick([...noticed, ...found]);
    noticed = [];
    const damage = fresh.filter(({ severity, repaired }) => severity === "error" && !repaired);
    isDamaged ||= damage.length > 0;
    isRepairable ||= damage.some(({ code }) => !logCodes.has(code));
    await listener.onFindings(fresh);
  };
  const step = async (findings: () => AsyncIterable<Finding>): Promise<void> => {
    try {
      for await (const finding of findings()) await take([finding]);
    } catch (error) {
      if (!hasErrorCode(error, "STORE_CORRUPT")) throw error;
      const at = error.details["path"];
      await take([createFinding("STORE_DAMAGED", error.message, { path: typeof at === "string" ? at : null })]);
    }
  };
  const repair = { isFailed: false };
  const store = await options.open((finding) => noticed.push(finding));
  if (path !== null) await assertOwn(store);
  if (folder !== null)
    for await (const finding of inspectStoreFolder(folder, signal)) {
      newFindings.addStrange(finding);
      await take([finding]);
    }
  if (folder !== null) await take([...inspectStoreSize(folder)]);
  if (isRepair && store.maintenance === undefined) listener.onNoRepair(store.capabilities.name);
  else if (isRepair) await step(() => repairs(store, options, repair, listener));
  await step(() => inspectStore(store, { query, signal }));
  await take([]);
  return { isDamaged, isRepairable, isRepairFailed: repair.isFailed };
}

/** A database of another program holds nothing to check or to repair. @throws {ThroughlineError} STORE_FOREIGN */
async function assertOwn(store: SessionStore): Promise<void> {
  try {
    await store.list({ limit: 1 });
  } catch (error) {
    // The check reports any other error.
    if (hasErrorCode(error, "STORE_FOREIGN")) throw error;
  }
}

/**
 * A store in one file is repaired into a copy beside it. The copy is opened and counted before the check reports it.
 */
async function* repairs(
  store: SessionStore,
  { path, openCopy, signal }: CheckStoreOptions,
  repair: { isFailed: boolean },
  listener: StoreCheckListener,
): AsyncGenerator<Finding> {
  for await (const finding of store.maintenance?.repair({ signal }) ?? []) {
    // The repair ends with a finding of damage that says whether it was repaired, so the last one counts. Findings about
    // single records say nothing about the repair.
    if (finding.code === "STORE_DAMAGED") repair.isFailed = path !== null && !finding.repaired;
    // A note replaces this record in the copy, so the record stays lost.
    const isLost = finding.repaired && finding.code === "RECORD_MISSING";
    yield isLost ? { ...finding, repaired: false } : finding;
    const copy = finding.repaired && finding.code === "STORE_DAMAGED" && path !== null ? finding.path : null;
    if (copy !== null && copy !== path) listener.onCopy(await contentOf(copy, openCopy));
  }
}

async function contentOf(path: string, openCopy: CheckStoreOptions["openCopy"]): Promise<RepairedCopy> {
  let [sessions, records, notes] = [0, 0, 0];
  await using copy = await openCopy(path);
  for await (const { ref } of sessionsOf(copy, {})) {
    sessions += 1;
    for await (const page of copy.read(ref, { payload: "head" })) {
      const lost = page.records.filter(({ id, side }) => side && id.startsWith("damaged:")).length;
      notes += lost;
      records += page.records.length - lost;
    }
  }
  return { path, sessions, records, notes };
}
