import { createFinding } from "@throughline/core/internal";
import { hasErrorCode } from "@throughline/core";
import type { Finding, ThroughlineError } from "@throughline/core";

/** Returns a finding for a session that cannot be read; null for any other error, which is a refusal. */
export function damageOf(error: ThroughlineError, key: string): Finding | null {
  if (!hasErrorCode(error, "STORE_CORRUPT", "STORE_IO", "CODEC_FAILED", "RECORD_INVALID")) return null;
  const { path } = error.details;
  return createFinding("STORE_DAMAGED", error.message, { key, path: typeof path === "string" ? path : null });
}
