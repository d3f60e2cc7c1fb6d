import { type AppendOnceOptions, systemRandom } from "@throughline/core/internal";

/** Creates a key for an append without records, because such an append has no content to identify a retry by. */
export function newAppend(): Pick<AppendOnceOptions, "idempotencyKey" | "isNewKey"> {
  return { idempotencyKey: systemRandom.uuid(), isNewKey: true };
}
