import { createFinding } from "@throughline/core/internal";
import { type Finding, ThroughlineError } from "@throughline/core";
import { writingMs } from "./end-anchor.ts";
import { ageMsOf } from "./file-work.ts";
import type { FileFacts } from "./files.ts";
import type { LineOwner } from "./stored-line.ts";
import type { Transcript } from "./transcript.ts";

/** The finding about a transcript that may not be read or is damaged; null for any other failure, of the disk or of its space. */
export function unreadableFinding(error: unknown, path: string, key: string | null): Finding | null {
  if (!ThroughlineError.isInstance(error) || error.details["path"] !== path) return null;
  const { errno, line, byteOffset } = error.details;
  if (error.code === "STORE_CORRUPT" && typeof line === "number")
    return createFinding("STORE_DAMAGED", error.message, { path, key, line, byteOffset: Number(byteOffset) });
  if (errno !== "EACCES" && errno !== "EPERM") return null;
  return createFinding("FILE_UNREADABLE", `The transcript may not be read (${errno}).`, { path, key });
}

/**
 * Where a file ends in half a line that another program may be in the middle of, which a write shows to whoever looks
 * meanwhile: how long the file is. Null when nobody is writing.
 */
export function growingBytes(transcript: Transcript, facts: FileFacts | null): number | null {
  const isHalf = transcript.tail?.code === "TAIL_TORN" || transcript.endsInHalf || transcript.lostCount > 0;
  if (!isHalf || facts === null) return null;
  return Math.abs(ageMsOf(facts)) < writingMs ? facts.sizeBytes : null;
}

/** What there is to say of the transcripts of an agent, each thing once, however often its file is opened and read. */
export class TranscriptFindings {
  readonly #onFinding: (owner: LineOwner, finding: Finding) => void;
  readonly #said: Set<string>;

  /** `said`: shared with whoever says things of other files. */
  constructor(said: Set<string>, onFinding: (owner: LineOwner, finding: Finding) => void) {
    this.#said = said;
    this.#onFinding = onFinding;
  }

  /** What a scan of the file with this identity has found. */
  report(identity: string, transcript: Transcript, facts: FileFacts): void {
    const { owner, path } = transcript.options;
    for (const finding of transcript.findings.splice(0)) this.say(identity, owner, finding);
    // Its writer may be in the middle of it; should it have died there, the next write or look says so.
    if (transcript.tail === null || ageMsOf(facts) < writingMs) return;
    const { code, byteOffset } = transcript.tail;
    const message = `${facts.sizeBytes - byteOffset} bytes at the end were never acknowledged.`;
    this.say(identity, owner, createFinding(code, message, { path, key: owner.ref.key, byteOffset }));
  }

  /** A tail that grew is the same tail; one that was cut off and is there again is another. */
  say(identity: string, owner: LineOwner, finding: Finding): void {
    const { code, line, byteOffset, recordId, repaired } = finding;
    const place = JSON.stringify([identity, code, line, byteOffset, recordId]);
    if (repaired) this.#said.delete(place);
    else if (this.#said.has(place)) return;
    else this.#said.add(place);
    this.#onFinding(owner, finding);
  }
}
