import { type SessionEvent, type SessionRef, type SessionState, ThroughlineError } from "@throughline/core";
import { ListedStates } from "../src/list-states.ts";
import { type ListPosition, planList, sessionsBehind, withinBytes } from "../src/list-page.ts";
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

describe("a list whose store ends a page by bytes", () => {
  const found = all.slice(0, 5);
  const source = {
    find: (after: ListPosition | null, limit: number) =>
      withinBytes(sessionsBehind(found, { sort: "key" }, after).slice(0, limit), () => 10, 20),
    path: null,
  };
  const state = ({ sessionId }: Found): SessionState => ({ sessionId }) as SessionState;

  it("goes on behind the last session of the page", async () => {
    const listed = new ListedStates(() => undefined);
    const pages: (readonly string[])[] = [];
    for (let cursor: string | null = null; ;) {
      const plan = planList({ sort: "key", ...(cursor === null ? {} : { cursor }) });
      const page = await listed.page(plan, { ...source, stateOf: state });
      pages.push(page.sessions.map(({ sessionId }) => sessionId));
      if (page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
    expect(pages).toEqual([["00000", "00001"], ["00002", "00003"], ["00004"]]);
  });

  it("looks on where none of them can be read", async () => {
    const listed = new ListedStates(() => undefined);
    const stateOf = (one: Found): SessionState => {
      if (one.sessionId < "00003") throw new ThroughlineError("STORE_CORRUPT", "It cannot be read.");
      return state(one);
    };
    const page = await listed.page(planList({ sort: "key" }), { ...source, stateOf });
    expect(page.sessions.map(({ sessionId }) => sessionId)).toEqual(["00003"]);
    expect(page.nextCursor).not.toBeNull();
  });
});
