import { expect, it, describe } from "vitest";
import { loadExisting, updateEntry } from "@throughline/core/internal";
import type { SessionEntry, SessionStore } from "@throughline/core";
import { createAgentSessions } from "../src/whole-turn/agent-sessions.ts";
import type { WholeTurnEvent } from "../src/whole-turn/whole-turn-event.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { key, places, writeTool } from "./whole-turn-fixture.ts";

const ref = { namespace: "", agentId: "main", key };

/** One turn at a size at which the agent is asked, after `before` was put into the entry. */
async function flushTurn(store: SessionStore, before: Readonly<Record<string, unknown>>, path: string | null) {
  const script = createScriptedModel();
  const events: WholeTurnEvent[] = [];
  const agent = () =>
    createAgentSessions({
      store,
      model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 20_000, maxOutputTokens: 500 },
      tools: [writeTool],
      summarizers: [],
      memoryFlush: { showInSystemPrompt: false },
      checkpoint: { enabled: false },
      retry: { intervalSeconds: 0 },
      onEvent: (event) => events.push(event),
    });
  {
    await using sessions = agent();
    await using session = await sessions.open(key);
    script.push({ text: "Hello.", usage: { input: 14_600, output: 10, cacheRead: 0, cacheWrite: 0 } });
    await session.runTurn("Hello");
  }
  await updateEntry(store, ref, (entry) => ({ ...entry, ...before }) as SessionEntry);
  await using sessions = agent();
  await using session = await sessions.open(key);
  const usage = { input: 14_700, output: 10, cacheRead: 0, cacheWrite: 0 };
  if (path !== null) script.push({ calls: [{ id: "call_1", name: "write", arguments: { path } }], usage });
  script.push({ text: "Here it is.", usage });
  await session.runTurn("And?");
  const asked = events.filter(({ name }) => name === "flush.asked").length;
  return { asked, entry: (await loadExisting(store, ref)).entry };
}

describe.each(places)("what the entry says of a flush, over $name", ({ open }) => {
  it(
    "is kept beside OpenClaw's fields, and the stored cycle decides, not two counts that are equal",
    { tags: ["slow"] },
    async () => {
      const { store, remove } = open();
      // By the counts alone this cycle had its flush; the cycle that is stored is an older one.
      const older = { v: 1, cycle: 2, phase: "answered", thresholds: { v: 1, phases: { 90: "fired" } } };
      const counts = { compactionCount: 3, memoryFlushAt: 1000, memoryFlushCompactionCount: 3 };
      const { asked, entry } = await flushTurn(store, { ...counts, memoryFlush: older }, null);
      expect(asked).toBe(1);
      expect(entry).toMatchObject({ compactionCount: 3, memoryFlushCompactionCount: 3 });
      expect(entry["memoryFlushAt"]).toBeGreaterThan(1000);
      await remove();
    },
  );

  it("asks no second time in its cycle, whatever the counts say", async () => {
    const { store, remove } = open();
    const now = { v: 1, cycle: 3, phase: "answered", thresholds: { v: 1, phases: { 90: "fired" } } };
    const counts = { compactionCount: 3, memoryFlushAt: 1000, memoryFlushCompactionCount: 1 };
    const { asked, entry } = await flushTurn(store, { ...counts, memoryFlush: now }, null);
    expect(asked).toBe(0);
    expect(entry).toMatchObject(counts);
    await remove();
  });

  it.each([
    ["memory/2026-03-01.md", true],
    ["src/a.ts", false],
    [null, false],
  ])("says as a boolean whether the agent wrote a memory file: %s", async (path, flushActioned) => {
    const { store, remove } = open();
    const fresh = { compactionCount: 1 };
    const { entry } = await flushTurn(store, fresh, path);
    expect(entry["memoryFlush"]).toMatchObject({ flushActioned, flushWrote: path !== null });
    await remove();
  });
});
