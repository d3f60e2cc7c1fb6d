import { createFinding, throughlineKind } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import { lostMessage } from "./line-damage.ts";
import { hasSeq, type SurveyedLine, type SurveyTarget } from "./transcript-survey.ts";

export class TranscriptEnd {
  #seq = 0;
  #batch = { line: 0, byteOffset: 0, taken: 0, count: 0 };
  #half: SurveyedLine | null = null;

  take({ path, owner }: SurveyTarget, surveyed: SurveyedLine): readonly Finding[] {
    const { line, byteOffset, envelope, read } = surveyed;
    if (hasSeq(surveyed)) this.#seq++;
    this.#half = read.unparsed === "torn" || read.unparsed === "nul" ? surveyed : null;
    if (this.#half !== null) return [];
    const place = { path, key: owner.ref.key, line, byteOffset, recordId: read.record.id };
    const [index, count] = envelope?.batch ?? [1, 1];
    const before = this.#batch;
    const isNext = index === before.taken + 1 && count === before.count;
    this.#batch = isNext && index > 1 ? { ...before, taken: index } : { line, byteOffset, taken: index, count };
    const data = read.record["data"] as { readonly reason?: unknown } | undefined;
    const isLost = throughlineKind(read.record) === "unparsed" && data?.reason === "lost";
    return [
      ...(isNext || before.taken === before.count ? [] : [missing(path, owner.ref.key, before)]),
      ...(isLost
        ? [createFinding("RECORD_MISSING", "The record of this place was acknowledged and is lost.", place)]
        : []),
    ];
  }

  /**
   * Returns the findings about the end: an append that was never acknowledged, or an acknowledged one that lost
   * records.
   */
  findings({ path, owner, acknowledgedSeq }: SurveyTarget): readonly Finding[] {
    const { key } = owner.ref;
    const { taken, count, line, byteOffset } = this.#batch;
    const half = this.#half;
    const isIncomplete = taken < count;
    const firstSeq = this.#seq - (half === null ? 0 : 1) - (isIncomplete ? taken : 0) + 1;
    if (half === null && !isIncomplete && this.#seq >= acknowledgedSeq) return [];
    if (firstSeq <= acknowledgedSeq) {
      const lost = acknowledgedSeq - this.#seq + (half === null ? 0 : 1);
      return [
        createFinding("RECORD_MISSING", lostMessage(lost, half !== null || isIncomplete), {
          path,
          key,
          line: half?.line ?? line,
          byteOffset: half?.byteOffset ?? byteOffset,
          // The rest of the record keeps the record's id, so the finding can name it.
          recordId: half?.read.record.id ?? null,
        }),
      ];
    }
    const torn = "The last line breaks off before its end.";
    const partial = "The last append is not complete; it was never acknowledged.";
    return [
      ...(half === null
        ? []
        : [createFinding("TAIL_TORN", torn, { path, key, line: half.line, byteOffset: half.byteOffset })]),
      ...(isIncomplete ? [createFinding("BATCH_INCOMPLETE", partial, { path, key, line, byteOffset })] : []),
    ];
  }
}

function missing(
  path: string,
  key: string,
  batch: { readonly line: number; readonly byteOffset: number; readonly taken: number; readonly count: number },
): Finding {
  const { line, byteOffset, taken, count } = batch;
  const message = `Of an append of ${count} records only the first ${taken} are here.`;
  return createFinding("RECORD_MISSING", message, { path, key, line, byteOffset });
}
