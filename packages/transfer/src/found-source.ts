import { createFinding, type FindingCode } from "@throughline/core/internal";
import { type Finding, hasErrorCode, ThroughlineError } from "@throughline/core";
import type { TranscriptSource } from "./transcript-source.ts";

export interface OtherSource {
  readonly kind: "skipped" | "refused";
  readonly path: string;
  readonly findings: readonly Finding[];
  readonly error: ThroughlineError | null;
}

export type FoundSource = TranscriptSource | OtherSource;

/** Turns an error into a refusal, so that the search continues with the next source. */
export async function* guarded<Found>(path: string, found: AsyncGenerator<Found>): AsyncGenerator<Found | OtherSource> {
  try {
    yield* found;
  } catch (error) {
    if (!ThroughlineError.isInstance(error)) throw error;
    yield refused(path, error);
  }
}

export function skipped(path: string, findings: readonly Finding[] = []): OtherSource {
  return { kind: "skipped", path, findings, error: null };
}

export function refused(path: string, error: ThroughlineError): OtherSource {
  // These errors mean that the file is readable but not importable, so no finding reports damage.
  const isOdd = !hasErrorCode(error, "FORMAT_UNKNOWN", "INPUT_INVALID");
  const finding = { ...createFinding(findingCodeOf(error), error.message, { path }), remedy: error.remedy };
  const findings = isOdd ? [finding] : [];
  return { kind: "refused", path, findings, error };
}

function findingCodeOf({ code }: ThroughlineError): FindingCode {
  return code === "FILE_NOT_FOUND" ? code : "FILE_UNREADABLE";
}
