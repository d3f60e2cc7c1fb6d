import { describe, expect, it } from "vitest";
import { UnflushedRows } from "../src/unflushed-rows.ts";
import type { SessionRow } from "../src/session-row.ts";

const count = 100_000;

function rowOf(nth: number): SessionRow {
  const sessionId = `s${nth}`;
  const times = { createdAtMs: 0, updatedAtMs: 0 };
  return { sessionId, key: `k${nth}`, revision: 1, entry: { sessionId }, ...times, isArchived: false, fileName: "" };
}

describe("the sessions whose line in the entries log may not be on the disk", () => {
  // With a look at all of them for each line it would take minutes.
  it("are noted by the hundred thousand, and forgotten once a flush reached them", () => {
    const unflushed = new UnflushedRows();
    for (let nth = 1; nth <= count; nth++) unflushed.note({ op: "save", rows: [rowOf(nth)] }, nth, 0);
    expect([1, count].map((nth) => unflushed.isOnDisk(`s${nth}`, count / 2))).toEqual([true, false]);
    // The flush forgets what it reached, with the next line.
    unflushed.note({ op: "save", rows: [rowOf(0)] }, count + 1, count);
    expect([2, count].map((nth) => unflushed.isOnDisk(`s${nth}`, 0))).toEqual([true, true]);
    expect([count, count + 1].map((bytes) => unflushed.isOnDisk("s0", bytes))).toEqual([false, true]);
  });

  it("are not those of which a line says the entry alone", () => {
    const unflushed = new UnflushedRows();
    unflushed.note({ op: "save", rows: [{ ...rowOf(1), revision: 2 }] }, 10, 0);
    unflushed.note({ op: "catch-up", rows: [rowOf(2)] }, 20, 0);
    expect(["s1", "s2"].map((id) => unflushed.isOnDisk(id, 0))).toEqual([true, true]);
  });
});
