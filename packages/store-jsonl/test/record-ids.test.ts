import { describe, expect, it } from "vitest";
import { RecordIds } from "../src/record-ids.ts";

describe("the ids of a transcript", () => {
  it("are found as in a map of their texts, also those that come again and those behind a mark", () => {
    const ids = new RecordIds();
    const expected = new Map<string, number>();
    const first = 501;
    for (let seq = first; seq < first + 50_000; seq++) {
      const id = seq % 7 === 0 ? `again-${seq % 1000}` : `${1_795_292_036_889 + seq}_${seq.toString(16)}`;
      ids.set(id, seq);
      expected.set(id, seq);
    }
    const wrong = [...expected].filter(([id, seq]) => ids.get(id) !== seq);
    expect(wrong).toEqual([]);
    expect(["", "again-1001", "1795292036889_x"].map((id) => ids.has(id))).toEqual([false, false, false]);
    expect([first - 1, first + 50_000].map((seq) => ids.sumOf(seq))).toEqual([undefined, undefined]);
    expect(ids.sumOf(first)).toBeTypeOf("number");
  });
});
