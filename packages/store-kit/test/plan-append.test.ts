import type { AppendOptions, AppendResult, SessionEntry, TurnRequest } from "@throughline/core";

import type { AppendTarget } from "../src/plan-append.ts";
import { createCapabilities, planAppend, prepareAppend } from "@throughline/store-kit/internal";
import { createRecordIds, RememberedAppends } from "@throughline/core/internal";
import type { SessionFrame } from "../src/session-frame.ts";
import { describe, expect, it } from "vitest";

const nowMs = 1_700_000_000_000;
const clock = { nowMs: () => nowMs, sleep: async () => {} };
const ids = createRecordIds({ clock, random: { uint32: () => 1, uuid: () => "u" } });
const capabilities = createCapabilities({
  name: "test",
  durabilities: ["process", "disk"],
  persistent: true,
  writers: "one-host",
  limits: { recordBytes: 200, batchRecords: 3 },
});
const store = { capabilities, ids, clock };
const user = { type: "message", message: { role: "user", content: "hi" } };

const frame: SessionFrame = {
  ref: { namespace: "", agentId: "main", key: "k" },
  sessionId: "s",
  revision: 4,
  head: { sessionId: "s", lastSeq: 2, headId: "r2", windowSeq: null, fence: 0, turn: null },
  createdAtMs: 1,
  updatedAtMs: 5,
};

function target(change: Partial<SessionFrame> = {}, remembered = new RememberedAppends()): AppendTarget {
  return {
    frame: { ...frame, ...change },
    entry: (): SessionEntry => ({ sessionId: "s", label: "old" }),
    holdsId: (id) => ["r1", "r2"].includes(id),
    findKeyed: (key, digest) => remembered.find(key, digest),
  };
}

function plan(drafts: Parameters<typeof prepareAppend>[0], options: AppendOptions = {}, given = target()) {
  return planAppend(prepareAppend(drafts, options, store), given, nowMs);
}

function coded(code: string): unknown {
  return expect.objectContaining({ code, outcome: "not-applied" });
}

describe("planAppend", () => {
  it("gives records their place, the session its next state, and the caller the result", () => {
    const { result, linked, frame: next, entry, events } = plan([{ ...user, id: "r3" }], { windowFromSeq: 2 });
    expect(result.records).toEqual([{ seq: 3, id: "r3", parentId: "r2", side: false, tsMs: nowMs, storedAtMs: nowMs }]);
    expect(linked.map(({ record }) => record.id)).toEqual(["r3"]);
    expect(next).toEqual({
      ...frame,
      updatedAtMs: nowMs,
      head: { ...frame.head, lastSeq: 3, headId: "r3", windowSeq: 2 },
    });
    expect([result.head, result.head === next.head]).toEqual([next.head, false]);
    expect([result.revision, result.durability, result.replayed, entry]).toEqual([4, "disk", false, null]);
    expect(events).toEqual([{ name: "records-appended", ref: frame.ref, fromSeq: 3, toSeq: 3 }]);
  });

  it("patches the entry in the same plan; a time far ahead is clamped and announced", () => {
    const ahead = nowMs + 3_600_000;
    const patched = plan([], { entry: { label: undefined, updatedAt: ahead } });
    expect([patched.entry, patched.result.revision]).toEqual([{ sessionId: "s", updatedAt: nowMs }, 5]);
    expect(patched.frame).toEqual({ ...frame, revision: 5, updatedAtMs: nowMs });
    expect(patched.events).toEqual([{ name: "updated-at-clamped", ref: frame.ref, claimedMs: ahead, storedMs: nowMs }]);
    // The writer says when there was activity: then the append itself is none.
    expect(plan([user], { entry: { updatedAt: 7 } }).frame.updatedAtMs).toBe(7);
    expect(() => plan([], { entry: { sessionId: "t" } })).toThrow(coded("INPUT_INVALID"));
  });

  it("answers a key with the first result and plans nothing", () => {
    const remembered = new RememberedAppends();
    const request = prepareAppend([user], { idempotencyKey: "k" }, store);
    const first = planAppend(request, target({}, remembered), nowMs).result;
    remembered.remember("k", request.keyed?.digest ?? "", first, nowMs);
    const again = plan([user], { idempotencyKey: "k", expect: { head: "gone" } }, target({}, remembered));
    expect(again).toEqual({
      result: { ...first, replayed: true } satisfies AppendResult,
      linked: [],
      frame,
      entry: null,
      events: [],
    });
  });

  it("refuses in the order of the contract: each line mends what the one before was refused for", () => {
    const remembered = new RememberedAppends();
    const result = plan([user]).result;
    remembered.remember("used", "digest", result, nowMs);
    const turn = { turnId: "t", owner: "o", leaseUntilMs: nowMs + 1, fence: 1 };
    const open: TurnRequest = { action: "open", turnId: "t2", owner: "o", leaseUntilMs: nowMs + 1, fence: 2 };
    const busy = { head: { ...frame.head, fence: 1, turn } };
    const archived = { ...busy, ref: { ...frame.ref, archiveId: "s" } };
    const taken = [{ ...user, id: "r1" }];
    const all: AppendOptions = { idempotencyKey: "used", turn: open, expect: { head: "x" } };
    const large = [{ ...user, id: "r1", text: "x".repeat(300) }];
    expect(() => plan([{ type: "" }], all, target(archived, remembered))).toThrow(coded("RECORD_INVALID"));
    expect(() => plan(taken, all, target(archived, remembered))).toThrow(coded("SESSION_ARCHIVED"));
    expect(() => plan(large, all, target(busy, remembered))).toThrow(coded("RECORD_TOO_LARGE"));
    expect(() => plan(taken, all, target(busy, remembered))).toThrow(coded("IDEMPOTENCY_MISMATCH"));
    const fresh = { ...all, idempotencyKey: "new" };
    expect(() => plan(taken, fresh, target(busy, remembered))).toThrow(coded("SESSION_BUSY"));
    const closed = { head: { ...frame.head, fence: 5 } };
    expect(() => plan(taken, fresh, target(closed, remembered))).toThrow(coded("TURN_FENCED"));
    const { turn: _turn, ...withoutTurn } = fresh;
    expect(() => plan(taken, withoutTurn, target({}, remembered))).toThrow(coded("APPEND_CONFLICT"));
    const right = { ...withoutTurn, expect: { head: "r2" } };
    expect(() => plan(taken, right, target({}, remembered))).toThrow(coded("RECORD_ID_TAKEN"));
    expect(plan([user], right, target({}, remembered)).linked).toHaveLength(1);
  });
});

describe("prepareAppend", () => {
  it("refuses options that cannot be meant, before any session is looked at", () => {
    for (const rewindTo of ["", "r\0", "half \ud800"]) {
      expect(() => prepareAppend([user], { rewindTo }, store)).toThrow(coded("INPUT_INVALID"));
    }
    expect(() => prepareAppend([user], { durability: "none" }, store)).toThrow(coded("CAPABILITY_UNSUPPORTED"));
    expect(() => prepareAppend([user, user, user, user], {}, store)).toThrow(coded("BATCH_TOO_LARGE"));
    expect(prepareAppend([user], { rewindTo: null, windowFromSeq: 1 }, store).keyed).toBeNull();
  });

  it("tells drafts apart by what they say, whatever ids and times they get", () => {
    const digestOf = (text: string) =>
      prepareAppend([{ type: "note", text }], { idempotencyKey: "k" }, store).keyed?.digest;
    expect(digestOf("a")).toBe(digestOf("a"));
    expect(digestOf("a")).not.toBe(digestOf("b"));
  });
});

describe("the fields an append sets in the entry", () => {
  it("are those of the call, whatever the caller does with them while it waits", () => {
    const entry: Record<string, unknown> = {
      label: "new",
      tags: ["a"],
      ["__proto__"]: 1,
      gone: undefined,
      run: () => 1,
    };
    const request = prepareAppend([], { entry }, store);
    entry["label"] = "changed";
    (entry["tags"] as string[]).push("b");
    const planned = planAppend(request, target(), nowMs).entry;
    expect(planned).toEqual({ sessionId: "s", label: "new", tags: ["a"], ["__proto__"]: 1 });
  });

  it.each([
    ["nothing", null],
    ["a text", "label"],
    ["a list", ["label"]],
    [
      "a getter that throws",
      {
        get label(): string {
          throw new Error("no");
        },
      },
    ],
    [
      "one deeper in",
      {
        label: {
          get text(): string {
            throw new Error("no");
          },
        },
      },
    ],
    ["a number JSON has not", { label: 10n }],
  ])("are refused with a code before the session is looked at: %s", (_name, entry) => {
    const options = { entry } as AppendOptions;
    expect(() => prepareAppend([], options, store)).toThrow(expect.objectContaining({ code: "INPUT_INVALID" }));
  });
});
