import { describe, expect, it } from "vitest";
import { checkedPage, readPages } from "../src/read-pages.ts";

const page = (seqs: readonly number[], lastSeq: number) => ({ records: seqs.map((seq) => ({ seq })), lastSeq });
const all = { afterSeq: 0, beforeSeq: Infinity, order: "ascending" } as const;

describe("a page of a store", () => {
  it.each([
    ["begins elsewhere", [2, 3], 3, all],
    ["leaves one out", [1, 3], 3, all],
    ["goes back", [1, 2, 1], 3, all],
    ["goes beyond the end", [1, 2, 3, 4], 3, all],
    ["goes beyond the range", [3, 4], 9, { ...all, afterSeq: 2, beforeSeq: 4 }],
    ["is empty before the end", [], 3, all],
    ["begins before the newest", [2, 1], 3, { ...all, order: "descending" }],
    ["is empty before the first", [], 3, { ...all, order: "descending", beforeSeq: 2 }],
  ] as const)("that %s is refused", (_what, seqs, lastSeq, range) => {
    expect(() => checkedPage(page(seqs, lastSeq), range)).toThrow(
      expect.objectContaining({ code: "STORE_CORRUPT", outcome: "not-applied" }),
    );
  });

  it.each([
    ["of all", [1, 2, 3], 3, all],
    ["that is full", [1, 2], 3, all],
    ["behind the end", [], 3, { ...all, afterSeq: 5 }],
    ["of no more", [], 3, { ...all, left: 0 }],
    ["backwards", [3, 2], 3, { ...all, order: "descending" }],
    ["backwards from the middle", [4, 3], 9, { ...all, order: "descending", beforeSeq: 5, afterSeq: 2 }],
  ] as const)("%s is given", (_what, seqs, lastSeq, range) => {
    const given = page(seqs, lastSeq);
    expect(checkedPage(given, range)).toBe(given);
  });

  it.each([
    ["ascending", [1, 2], 1],
    ["descending", [2, 1], 1],
    ["ascending", [1], 2],
  ] as const)("%s of a bounded range %j is the last of %i when it reaches its end", async (order, seqs, expected) => {
    const pages = [page(seqs, 9), page(seqs.length === 1 ? [2] : [], 9)];
    let asked = 0;
    const read = readPages<"head">({ payload: "head", order, beforeSeq: 3 }, () => pages[asked++] as never);
    expect(await Array.fromAsync(read)).toHaveLength(expected);
    expect(asked).toBe(expected);
  });

  it("that leads a reader back ends the read", async () => {
    const pages = [page([1, 2], 4), page([1, 2], 4)];
    const read = readPages<"head">({ payload: "head" }, () => (pages.shift() ?? expect.unreachable()) as never);
    await expect(Array.fromAsync(read)).rejects.toMatchObject({ code: "STORE_CORRUPT", details: { expectedSeq: 3 } });
  });
});
