import { createFinding } from "@throughline/core/internal";
import { type Finding, ThroughlineError } from "@throughline/core";
import { writingMs } from "./end-anchor.ts";
import { ageMsOf } from "./file-work.ts";
import type { FileFacts } from "./files.ts";
import type { LineOwner } from "./stored-line.ts";
import type { Transcript } from "./transcript.ts";

/** Returns the finding about an unreadable or damaged transcript; null for other failures, such as a full disk. */
export function unreadableFinding(error: unknown, path: string, key: string | null): Finding | null {
  if (!ThroughlineError.isInstance(error) || error.details["path"] !== path) return null;
  const { errno, line, byteOffset } = error.details;
  if (error.code === "STORE_CORRUPT" && typeof line === "number")
    return createFinding("STORE_DAMAGED", error.message, { path, key, line, byteOffset: Number(byteOffset) });
  if (errno !== "EACCES" && errno !== "EPERM") return null;
  return createFinding("FILE_UNREADABLE", `The transcript may not be read (${errno}).`, { path, key });
}

/**
 * Returns the size of a file that ends in an incomplete line while another program may still be writing it. A write is
 * visible to readers before it is complete. Returns null when no write is under way.
 */
export function growingBytes(transcript: Transcript, facts: FileFacts | null): number | null {
  const isHalf = transcript.tail?.code === "TAIL_TORN" || transcript.endsInHalf || transcript.lostCount > 0;
  if (!isHalf || facts === null) return null;
  return Math.abs(ageMsOf(facts)) < writingMs ? facts.sizeBytes : null;
}

/** Reports each finding about an agent's transcripts once, however often the file is read. */
export class TranscriptFindings {
  readonly #onFinding: (owner: LineOwner, finding: Finding) => void;
  readonly #said: Set<string>;

  constructor(said: Set<string>, onFinding: (owner: LineOwner, finding: Finding) => void) {
    this.#said = said;
    this.#onFinding = onFinding;
  }

  report(identity: string, transcript: Transcript, facts: FileFacts): void {
    const { owner, path } = transcript.options;
    for (const finding of transcript.findings.splice(0)) this.say(identity, owner, finding);
    // The writer may still be writing the line. If it died, the next write or refresh reports it.
    if (transcript.tail === null || ageMsOf(facts) < writingMs) return;
    const { code, byteOffset } = transcript.tail;
    const message = `${facts.sizeBytes - byteOffset} bytes at the end were never acknowledged.`;
    this.say(identity, owner, createFinding(code, message, { path, key: owner.ref.key, byteOffset }));
  }

  /** Reports a finding once. A tail that grew counts as the same; a tail that appears again after its repair is new. */
  say(identity: string, owner: LineOwner, finding: Finding): void {
    const { code, line, byteOffset, recordId, repaired } = finding;
    const place = JSON.stringify([identity, code, line, byteOffset, recordId]);
    if (repaired) this.#said.delete(place);
    else if (this.#said.has(place)) return;
    else this.#said.add(place);
    this.#onFinding(owner, finding);
  }
}
