import { headAfterAppend } from "../src/plan-append.ts";
import { planList } from "../src/list-page.ts";
import {
  defaultStoreLimits,
  prepareDrafts,
  RememberedAppends,
  systemClock,
  systemRecordIds,
} from "@throughline/core/internal";
import { describe, expect, it } from "vitest";

const ports = { ids: systemRecordIds, clock: systemClock, limits: defaultStoreLimits };
const record = { type: "message", id: "r1", parentId: null, timestamp: "2026-01-02T03:04:05.006Z" };
const head = { sessionId: "s", lastSeq: 3, headId: "r3", windowSeq: 2, fence: 4, turn: null };

describe("rules all stores share", () => {
  it("refuse a source that is not one whole line", () => {
    for (const source of ["a\nb", "half \ud800", Uint8Array.of(1, 0x0a)]) {
      expect(() => prepareDrafts([{ source, record }], ports)).toThrow(/its source holds/);
    }
    expect(prepareDrafts([{ source: "a\r", record }], ports)).toHaveLength(1);
  });

  it("leave the head of an append without records where it stands", () => {
    expect(headAfterAppend(head, [], {}, 0)).toEqual(head);
    expect(() => headAfterAppend(head, [], { expect: { head: "r2" } }, 0)).toThrow(/The head is "r3"/);
    expect(headAfterAppend(head, [], { rewindTo: null, windowFromSeq: 3 }, 0)).toEqual({
      ...head,
      headId: null,
      windowSeq: 3,
    });
  });

  it("answer a remembered key with a value of its own", () => {
    const remembered = new RememberedAppends();
    const result = { records: [], head, revision: 1, durability: "none" as const, replayed: false };
    remembered.remember("k", "digest", result, 0);
    expect(remembered.find("k", "digest")).toEqual({ ...result, replayed: true });
    expect(remembered.find("k", "digest")?.head).not.toBe(head);
    expect(() => remembered.find("k", "other")).toThrow(/Other drafts/);
    expect(remembered.find("new", "digest")).toBeNull();
  });

  it("refuse a list limit that is no whole number from 1 on", () => {
    for (const limit of [0, -1, 1.5, Number.NaN]) expect(() => planList({ limit })).toThrow(/limit/);
  });
});
