import type { Finding } from "@throughline/core";
import type { CheckStoreOptions } from "./check-store.ts";
import { inspectStore } from "@throughline/transfer/internal";
import { inspectStoreFolder } from "./inspect-store-folder.ts";
import { NewFindings } from "./new-findings.ts";

/** Holds the options of `verifyStore`. */
export interface VerifyStoreOptions extends Pick<CheckStoreOptions, "open" | "folder" | "query" | "signal"> {
  /** Reads the content too, where the store's own check would use a shorter method. */
  readonly isFull: boolean;
}

/** Receives the results of a verification while it runs. */
interface VerifyStoreListener {
  /**
   * Receives findings that were not reported before; the list may be empty. The verification waits for the returned
   * promise.
   */
  onFindings(findings: readonly Finding[]): Promise<void>;
  /**
   * Reports that the store has no check of its own, so every session is read. `name` is the name in the store's
   * capabilities.
   */
  onNoCheck(name: string): void;
}

/**
 * Reads the whole store and reports data that differs from the data that was written. Each loss is reported once. The
 * function changes nothing.
 * @throws {ThroughlineError} STORE_CORRUPT, STORE_FOREIGN, ABORTED, and any error of opening the store
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
    // Findings of severity `info`, such as a record type of another program, describe data that was written like this.
    // They are no loss.
    for await (const finding of inspectStore(store, { query, signal }))
      if (finding.severity !== "info") await take([finding]);
  } else {
    for await (const finding of store.maintenance.verify({ full: isFull, signal })) await take([finding]);
  }
  await take([]);
}
