import type { Finding } from "@throughline/core";
import type { CheckStoreOptions } from "./check-store.ts";
import { inspectStore } from "@throughline/transfer/internal";
import { inspectStoreFolder } from "./inspect-store-folder.ts";
import { NewFindings } from "./new-findings.ts";

/** Options of `verifyStore`. */
export interface VerifyStoreOptions extends Pick<CheckStoreOptions, "open" | "folder" | "query" | "signal"> {
  /** Reads the content too, where the store's own check knows a shorter way. */
  readonly isFull: boolean;
}

/** Receives what a verification finds, as it is found. */
interface VerifyStoreListener {
  /** Called with findings that were not reported before, perhaps with none. The verification waits for it. */
  onFindings(findings: readonly Finding[]): Promise<void>;
  /** The store has no check of its own, so every session is read; `name` is that of its capabilities. */
  onNoCheck(name: string): void;
}

/**
 * Reads the whole store and reports what cannot be what was written, each loss once. Changes nothing.
 * @throws {ThroughlineError} STORE_CORRUPT, STORE_FOREIGN, ABORTED, and what opening the store throws
 */
export async function verifyStore(options: VerifyStoreOptions, listener: VerifyStoreListener): Promise<void> {
  const { folder, isFull, query, signal } = options;
  const noticed: Finding[] = [];
  const store = await options.open((finding) => noticed.push(finding));
  const newFindings = new NewFindings();
  const take = (found: readonly Finding[]): Promise<void> =>
    listener.onFindings(newFindings.pick([...noticed.splice(0), ...found]));
  if (folder !== null)
    for await (const finding of inspectStoreFolder(folder, signal)) {
      newFindings.addStrange(finding);
      await listener.onFindings([finding]);
    }
  if (store.maintenance === undefined) {
    listener.onNoCheck(store.capabilities.name);
    // What is only worth knowing, such as a type of record of another program, was written so.
    for await (const finding of inspectStore(store, { query, signal }))
      if (finding.severity !== "info") await take([finding]);
  } else {
    for await (const finding of store.maintenance.verify({ full: isFull, signal })) await take([finding]);
  }
  await take([]);
}
