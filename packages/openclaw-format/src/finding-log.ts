import { createFinding, type FindingCode, type FindingPlace } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";

/**
 * Limits the findings kept for each code. Further ones are only counted, so that a file of garbage does not fill the
 * memory.
 */
const maxPerCode = 1000;

export class FindingLog {
  readonly findings: Finding[] = [];
  private readonly counts = new Map<FindingCode, number>();
  private readonly where: FindingPlace;

  constructor(where: FindingPlace) {
    this.where = where;
  }

  add(code: FindingCode, message: string, place: FindingPlace): void {
    const count = (this.counts.get(code) ?? 0) + 1;
    this.counts.set(code, count);
    if (count <= maxPerCode) this.findings.push(createFinding(code, message, { ...this.where, ...place }));
  }

  /** Some findings hold for the whole file, so they are reported once. */
  addOnce(code: FindingCode, message: string, place: FindingPlace): void {
    if (!this.counts.has(code)) this.add(code, message, place);
  }

  /**
   * Adds one finding for each code over the limit, with the number of findings that are not listed. A file that grows
   * may be finished again, and what holds for the whole file stays reported.
   */
  finish(): void {
    for (const [code, count] of this.counts) {
      if (count <= maxPerCode) continue;
      this.findings.push(createFinding(code, `${count - maxPerCode} more of this kind are not listed.`, this.where));
      this.counts.set(code, maxPerCode);
    }
  }
}
