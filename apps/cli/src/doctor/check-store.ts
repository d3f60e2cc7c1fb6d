import { createFinding } from "@throughline/core/internal";
import { hasErrorCode } from "@throughline/core";
import type { Finding, ListQuery, SessionStore } from "@throughline/core";
import { inspectStore, sessionsOf } from "@throughline/transfer/internal";
import { inspectStoreFolder } from "./inspect-store-folder.ts";
import { NewFindings } from "./new-findings.ts";

/** What a repaired copy holds. What a fork shares with its origin counts in both sessions. */
interface RepairedCopy {
  /** The path of the copy. */
  readonly path: string;
  /** How many sessions the copy holds. */
  readonly sessions: number;
  /** How many records the copy holds, without the notes. */
  readonly records: number;
  /** Notes that stand for records which could not be read. */
  readonly notes: number;
}

/** Receives what a check finds, as it is found. */
interface StoreCheckListener {
  /** Called with findings that were not reported before, perhaps with none. The check waits for it. */
  onFindings(findings: readonly Finding[]): Promise<void>;
  /** A repair wrote a copy, which was opened and counted. */
  onCopy(copy: RepairedCopy): void;
  /** A repair was asked of a store that keeps nothing that could be repaired; `name` is that of its capabilities. */
  onNoRepair(name: string): void;
}

/** Options of `checkStore`. */
export interface CheckStoreOptions {
  /** Opens the store; called once. The caller closes it. */
  open(onFinding: (finding: Finding) => void): Promise<SessionStore>;
  /** Opens the copy that a repair wrote; the check closes it. */
  openCopy(path: string): Promise<SessionStore>;
  /** The file of a store in one file; null for any other. */
  readonly path: string | null;
  /** The folder of a JSON Lines store, whose files are looked at as well; null for any other, and to leave them out. */
  readonly folder: string | null;
  /** Writes what can be read of a damaged store to a copy, or repairs it where it lies. */
  readonly isRepair: boolean;
  /** The sessions whose records are checked. */
  readonly query: ListQuery;
  /** Ends the check before the next step. */
  readonly signal: AbortSignal;
}

/** The outcome of a check. */
export interface StoreCheck {
  /** Errors were found that no repair fixed. */
  readonly isDamaged: boolean;
  /** Some of them are in a file that can be repaired. */
  readonly isRepairable: boolean;
  /** A repair was asked for, and nothing of a damaged store could be saved. */
  readonly isRepairFailed: boolean;
}

/** What these report was lost from the log: no file holds it any more. */
const logCodes: ReadonlySet<string> = new Set(["LOG_DAMAGED", "LOG_MISSING"]);

/**
 * Checks a store, and repairs it if asked; reports each loss once, whichever of the checks finds it first. Damage ends only
 * the step that met it.
 * @throws {ThroughlineError} STORE_FOREIGN for the database of another program, ABORTED, and what opening the store throws
 */
export async function checkStore(options: CheckStoreOptions, listener: StoreCheckListener): Promise<StoreCheck> {
  const { path, folder, isRepair, query, signal } = options;
  const newFindings = new NewFindings();
  // What the store notices while it is read comes as an event; its own check may report the same again.
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

/** A store in one file is repaired into a copy beside it, which is opened and counted before it is called repaired. */
async function* repairs(
  store: SessionStore,
  { path, openCopy, signal }: CheckStoreOptions,
  repair: { isFailed: boolean },
  listener: StoreCheckListener,
): AsyncGenerator<Finding> {
  for await (const finding of store.maintenance?.repair({ signal }) ?? []) {
    // A finding of damage is followed by one that says whether it was repaired.
    repair.isFailed = path !== null && finding.code === "STORE_DAMAGED" && !finding.repaired;
    // A record that a note stands for is missing in the copy as well.
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
