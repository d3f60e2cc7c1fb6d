import { type SessionEvent, type SessionRef, ThroughlineError } from "@throughline/core";
import { ListedStates, planList, sessionsBehind } from "@throughline/core/store";
import { type ListPosition } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";

interface Found {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly updatedAtMs: number;
}

const all: readonly Found[] = Array.from({ length: 20_000 }, (_, index) => {
  const name = String(index).padStart(5, "0");
  return { ref: { namespace: "", agentId: "main", key: `agent:main:${name}` }, sessionId: name, updatedAtMs: index };
});

describe("a list of nothing but sessions that cannot be read", () => {
  it.each(["STORE_CORRUPT", "CODEC_FAILED"] as const)("is asked for in few steps: %s", async (code) => {
    const events: SessionEvent[] = [];
    const listed = new ListedStates((event) => events.push(event));
    const asked: number[] = [];
    const find = (after: ListPosition | null, limit: number): readonly Found[] => {
      asked.push(limit);
      return sessionsBehind(all, { sort: "key" }, after).slice(0, limit);
    };
    const stateOf = (): never => {
      throw new ThroughlineError(code, "It cannot be read.");
    };
    const page = listed.page(planList({ sort: "key", limit: 10 }), { find, stateOf, path: null });
    if (code === "CODEC_FAILED") await expect(page).rejects.toMatchObject({ code });
    else expect(await page).toEqual({ sessions: [], nextCursor: null });
    expect(events).toHaveLength(code === "CODEC_FAILED" ? 0 : all.length);
    expect(asked.length).toBeLessThan(40);
    expect(Math.max(...asked)).toBeLessThanOrEqual(1000);
  });
});
