import type { AppendOnceOptions } from "@throughline/core/internal";
import { systemRandom } from "@throughline/core/internal";

/** A key for an append without records, which has nothing of its own to be known by. */
export function newAppend(): Pick<AppendOnceOptions, "idempotencyKey" | "isNewKey"> {
  return { idempotencyKey: systemRandom.uuid(), isNewKey: true };
}
