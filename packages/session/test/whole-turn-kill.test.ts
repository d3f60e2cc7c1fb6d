import { endingStore } from "@throughline/test-kit";
import { describe, expect, it } from "vitest";
import type { SessionStore } from "@throughline/core";
import { type AgentSessions, createAgentSessions } from "../src/whole-turn/agent-sessions.ts";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { testSize } from "../../../tools/test-size.ts";
import { thousandTokens, usageOf } from "./scripted-agents.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { echoTool } from "./session-fixture.ts";
import { allRecords, key, lostMessages, workingSummary } from "./whole-turn-fixture.ts";

let processes = 0;

/** Each start is another process: those before it are gone. */
function start(store: SessionStore, script = createScriptedModel(), enabled = false): AgentSessions {
  processes += 1;
  const self = `process ${processes}`;
  return createAgentSessions({
    store,
    owners: { self, stateOf: (owner) => (owner === self ? "self" : "gone") },
    model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 20_000, maxOutputTokens: 500 },
    tools: [echoTool],
    summarizers: [{ summarize: () => Promise.resolve({ summary: workingSummary(1), source: "works", usage: null }) }],
    checkpoint: {
      enabled,
      writers: [{ name: "mine", write: () => Promise.resolve('{"summary": "They spoke."}') }],
    },
    retry: { intervalSeconds: 0 },
  });
}

describe("a process that ends in a turn that flushes, compacts and makes a checkpoint", () => {
  it.each([false, true])(
    "leaves the old state or the new at each call of the store (done: %s)",
    { tags: ["slow"], timeout: 120_000 },
    async (isDone) => {
      let isOver = false;
      let steps = 0;
      // In the short tier one call is not done and the next one is, by turns.
      const stride = testSize({ short: 5, long: 1 });
      for (let calls = isDone && stride > 1 ? 2 : 1; !isOver; calls += stride) {
        const data = createMemoryData();
        {
          const script = createScriptedModel();
          await using sessions = start(createMemoryStore({ data }), script);
          await using session = await sessions.open(key);
          for (let at = 0; at < 13; at++) {
            script.push({ text: `Answer ${at}.`, usage: usageOf(1100 * (at + 1)) });
            await session.runTurn(`Question ${at}: ${thousandTokens}`);
          }
        }
        const dying = endingStore(createMemoryStore({ data }), calls, isDone);
        const script = createScriptedModel();
        script.push("NO_REPLY", "The answer.");
        const sessions = start(dying.store, script, true);
        try {
          const session = await sessions.open(key);
          await session.runTurn(`The one that compacts ${thousandTokens}`);
          isOver = dying.made() < calls;
        } catch (error) {
          expect(String(error)).toContain("the process is gone");
          steps += 1;
        }
        await sessions.close();
        const store = createMemoryStore({ data });
        const before = await allRecords(store);
        const compacted = before.filter(({ type }) => type === "compaction").length;
        expect(compacted).toBeLessThanOrEqual(1);
        expect(lostMessages(before)).toEqual([]);
        const next = createScriptedModel();
        await using reopened = start(store, next);
        await using session = await reopened.open(key);
        expect(session.entry.compactionCount ?? 0).toBe(compacted);
        const shown = JSON.stringify((await session.messages()).messages);
        expect(shown.includes("Topics: number 1.")).toBe(compacted === 1);
        // Nothing of it is in the way of the next turn.
        expect((await session.runTurn("And then?")).outcome).toBe("done");
        expect(lostMessages(await allRecords(store))).toEqual([]);
      }
      expect(steps).toBeGreaterThan(testSize({ short: 1, long: 10 }));
    },
  );
});
