import { describe, expect, it } from "vitest";
import type { TurnRequest } from "@throughline/core";
import { nextTurnState, type TurnState } from "../src/turn-lease.ts";

const nowMs = 1000;
const open = (fence: number): TurnRequest => ({ action: "open", turnId: "t2", owner: "b", leaseUntilMs: 2000, fence });
const states: Record<"none" | "running" | "lapsed", TurnState> = {
  none: { fence: 4, turn: null },
  running: { fence: 4, turn: { turnId: "t1", owner: "a", leaseUntilMs: 1001, fence: 4 } },
  lapsed: { fence: 4, turn: { turnId: "t1", owner: "a", leaseUntilMs: 1000, fence: 4 } },
};
type Expected = "BUSY" | "FENCED" | "same" | "opened" | "renewed" | "closed";
type RequestName =
  | "plain main"
  | "plain side"
  | "open next"
  | "open stale"
  | "renew"
  | "within"
  | "close"
  | "within old"
  | "close old";

// Every state against every request; the type asks for each cell.
const table: Record<keyof typeof states, Record<RequestName, Expected>> = {
  none: {
    "plain main": "same",
    "plain side": "same",
    "open next": "opened",
    "open stale": "FENCED",
    renew: "FENCED",
    within: "FENCED",
    close: "FENCED",
    "within old": "FENCED",
    "close old": "FENCED",
  },
  running: {
    "plain main": "BUSY",
    "plain side": "same",
    "open next": "BUSY",
    "open stale": "BUSY",
    renew: "renewed",
    within: "same",
    close: "closed",
    "within old": "FENCED",
    "close old": "FENCED",
  },
  lapsed: {
    "plain main": "same",
    "plain side": "same",
    "open next": "opened",
    "open stale": "FENCED",
    renew: "renewed",
    within: "same",
    close: "closed",
    "within old": "FENCED",
    "close old": "FENCED",
  },
};

const requests: Record<RequestName, TurnRequest | undefined> = {
  "plain main": undefined,
  "plain side": undefined,
  "open next": open(5),
  "open stale": open(4),
  renew: { action: "renew", leaseUntilMs: 3000, fence: 4 },
  within: { action: "within", fence: 4 },
  close: { action: "close", fence: 4 },
  "within old": { action: "within", fence: 3 },
  "close old": { action: "close", fence: 3 },
};

describe("nextTurnState", () => {
  for (const stateName of Object.keys(table) as (keyof typeof states)[]) {
    for (const [requestName, expected] of Object.entries(table[stateName]) as [RequestName, Expected][]) {
      it(`${stateName}, ${requestName}: ${expected}`, () => {
        const state = states[stateName];
        const run = () =>
          nextTurnState(state, requests[requestName], { hasMainRecord: requestName !== "plain side", nowMs });
        if (expected === "BUSY")
          expect(run).toThrow(expect.objectContaining({ code: "SESSION_BUSY", retryable: true }));
        else if (expected === "FENCED")
          expect(run).toThrow(expect.objectContaining({ code: "TURN_FENCED", retryable: false }));
        else if (expected === "same") expect(run()).toEqual(state);
        else if (expected === "opened")
          expect(run()).toEqual({ fence: 5, turn: { turnId: "t2", owner: "b", leaseUntilMs: 2000, fence: 5 } });
        else if (expected === "renewed") expect(run().turn?.leaseUntilMs).toBe(3000);
        else expect(run()).toEqual({ fence: 4, turn: null });
      });
    }
  }

  it("takes only ids and owners that are the same text in every store", () => {
    for (const turnId of ["", "a\u0000", "\ud800", "x".repeat(257)]) {
      const request: TurnRequest = { action: "open", turnId, owner: "b", leaseUntilMs: 2000, fence: 5 };
      const run = () => nextTurnState(states.none, request, { hasMainRecord: false, nowMs });
      expect(run).toThrow(expect.objectContaining({ code: "INPUT_INVALID" }));
    }
  });

  it("takes only times as the end of a lease", () => {
    for (const leaseUntilMs of [Number.NaN, Infinity]) {
      const invalid = expect.objectContaining({ code: "INPUT_INVALID", outcome: "not-applied" });
      const renewal: TurnRequest = { action: "renew", leaseUntilMs, fence: 4 };
      const append = { hasMainRecord: false, nowMs };
      expect(() => nextTurnState(states.none, { ...open(5), leaseUntilMs } as TurnRequest, append)).toThrow(invalid);
      expect(() => nextTurnState(states.running, renewal, append)).toThrow(invalid);
    }
  });

  it("names the owner and the time left of a running turn", () => {
    expect(() => nextTurnState(states.running, open(5), { hasMainRecord: false, nowMs })).toThrow(
      expect.objectContaining({ details: expect.objectContaining({ owner: "a", leaseLeftMs: 1 }) }),
    );
  });
});
