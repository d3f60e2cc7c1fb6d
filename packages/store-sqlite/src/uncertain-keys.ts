import { hasErrorCode, ThroughlineError, type AppendResult, type ErrorCode, type SessionRef } from "@throughline/core";
import { sessionRefText } from "@throughline/core/internal";

/** Limits how many keys of appends with an unknown outcome are remembered. */
const mostKeys = 4096;

/** After these errors the store could not be asked whether it already has the key. */
const unasked: readonly ErrorCode[] = [
  "STORE_IO",
  "STORE_FULL",
  "STORE_LOCKED",
  "STORE_READ_ONLY",
  "STORE_CORRUPT",
  "FILE_UNREADABLE",
  "INTERNAL",
];

/**
 * States the outcome of a keyed append that failed: of its key, not only of this attempt. An earlier attempt may have
 * been applied, by this handle or by another. Until the key has been looked up in the log, the outcome is unknown.
 */
export class UncertainKeys {
  readonly #keys = new Set<string>();

  /**
   * Runs an append. `write` calls back once the key was looked up, inside the transaction that appends. A new key has
   * no earlier attempts except those of this handle.
   */
  async follow(
    ref: SessionRef,
    { key, isNew }: { readonly key: string; readonly isNew: boolean },
    write: (lookedFor: () => void) => Promise<AppendResult>,
  ): Promise<AppendResult> {
    const name = `${sessionRefText(ref)} ${key}`;
    let isKnown = false;
    try {
      const result = await write(() => (isKnown = true));
      this.#keys.delete(name);
      return result;
    } catch (error) {
      if (!ThroughlineError.isInstance(error) || error.outcome === null) throw error;
      const isUncertain =
        error.outcome === "unknown" ||
        (!isKnown && (this.#keys.has(name) || (!isNew && hasErrorCode(error, ...unasked))));
      if (!isUncertain) {
        this.#keys.delete(name);
        throw error;
      }
      this.#remember(name);
      throw error.outcome === "unknown" ? error : asUnknown(error);
    }
  }

  #remember(name: string): void {
    const [oldest] = this.#keys.size >= mostKeys ? this.#keys : [];
    if (oldest !== undefined) this.#keys.delete(oldest);
    this.#keys.add(name);
  }
}

function asUnknown({ code, message, details, cause, remedy }: ThroughlineError): ThroughlineError {
  return new ThroughlineError(code, message, { outcome: "unknown", details, cause, remedy });
}
