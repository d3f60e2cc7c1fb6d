import { describe, expect, it } from "vitest";
import type { ChatRequest } from "@throughline/core";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createScriptedModel, type ScriptedModel, type ScriptedReply } from "./scripted-model.ts";
import { workingAgents, thousandTokens, usageOf } from "./scripted-agents.ts";
import { allRecords, key } from "./whole-turn-fixture.ts";

const textOf = (request: ScriptedModel["requests"][number] | undefined): string => JSON.stringify(request?.messages);

describe("a memory flush in a turn", () => {
  it(
    "is asked before its compaction, observed, and no answer to the user is lost for it",
    { tags: ["slow"] },
    async () => {
      const script = createScriptedModel();
      const { sessions, store, names, events } = workingAgents(script);
      await using session = await sessions.open(key);
      for (let at = 1; at <= 9; at++) {
        script.push({ text: `Answer ${at}.`, usage: usageOf(1000 * at) });
        await session.runTurn(`Question ${at}: ${thousandTokens}`);
      }
      events.length = 0;
      script.push(
        {
          calls: [{ id: "call_1", name: "write", arguments: { path: "./memory/2026-03-01.md" } }],
          usage: usageOf(15_600),
        },
        "NO_REPLY",
        "The answer to the big one.",
      );
      // One big turn crosses everything.
      const turn = await session.runTurn(`A big one: ${thousandTokens.repeat(6)}`);
      expect(turn.text).toBe("The answer to the big one.");
      expect(names().filter((name) => /^(?:flush\.|compaction\.applied|call\.started)/.test(name))).toEqual([
        "flush.asked",
        "call.started",
        "compaction.applied",
        "call.started",
        "flush.silent",
        "call.started",
        "flush.ended",
      ]);
      expect(textOf(script.requests[9])).toContain("[SYSTEM: pre-compaction memory flush]");
      expect(session.entry["memoryFlush"]).toMatchObject({ flushActioned: true, flushWrote: true });
      const asked = (await allRecords(store)).filter(
        ({ record }) => (record["message"] as { source?: string } | undefined)?.source === "flush",
      );
      expect(asked).toHaveLength(2);
      expect(session.entry["userMessageCount"]).toBe(10);
      await sessions.close();
    },
  );

  it("is asked once a cycle, over a restart too, and again after a compaction", { tags: ["slow"] }, async () => {
    const data = createMemoryData();
    const script = createScriptedModel();
    const all: string[] = [];
    const sized = ({ messages }: ChatRequest): ScriptedReply => {
      script.push(sized);
      return { text: "Answer.", usage: usageOf(Math.ceil(JSON.stringify(messages).length / 4.3)) };
    };
    script.push(sized);
    for (let start = 0; start < 3; start++) {
      const { sessions, names } = workingAgents(script, { store: createMemoryStore({ data }) });
      const session = await sessions.open(key);
      for (let at = 0; at < 12; at++) {
        await session.runTurn(`Question ${start}.${at}: ${thousandTokens}`);
      }
      all.push(...names().filter((name) => name === "flush.asked" || name === "compaction.applied"));
      await sessions.close();
    }
    expect(all.length).toBeGreaterThan(3);
    // They take turns: never asked twice in a cycle, and never compacted without.
    expect(all.filter((_, at) => at % 2 === 0).every((name) => name === "flush.asked")).toBe(true);
    expect(all.filter((_, at) => at % 2 === 1).every((name) => name === "compaction.applied")).toBe(true);
  });

  it("says in the system prompt what belongs there, from the threshold on", async () => {
    const script = createScriptedModel();
    const { sessions } = workingAgents(script, { showContextLine: true });
    await using session = await sessions.open(key);
    for (const size of [2000, 11_000, 14_200]) {
      script.push({ text: "Answer.", usage: usageOf(size) });
      await session.runTurn("And?");
    }
    await session.runTurn("And?");
    const systems = script.requests.map(({ system }) => system ?? "");
    expect(systems[0]).toMatch(/^Be kind\.\n\n\[Context: /);
    expect(systems[0]).not.toContain("Consider noting");
    expect(systems[1]).not.toContain("Consider noting");
    expect(systems[2]).toContain("Context at 55%. Consider noting key decisions to memory.");
    expect(systems[3]).toMatch(/Context at 7\d%\. Write important context to memory\/\d{4}-\d\d-\d\d\.md now\./);
    await sessions.close();
  });

  it("that failed before it could be answered is asked again", async () => {
    const script = createScriptedModel();
    const { sessions, names } = workingAgents(script, { memoryFlush: { showInSystemPrompt: false } });
    await using session = await sessions.open(key);
    script.push({ text: "Answer.", usage: usageOf(14_600) });
    await session.runTurn("One");
    script.push({ error: new Error("no server there") });
    await expect(session.runTurn("Two")).rejects.toThrow("no server there");
    await session.resume();
    expect(names().filter((name) => name.startsWith("flush."))).toEqual([
      "flush.repaired",
      "flush.asked",
      "flush.failed",
      "flush.asked",
      "flush.ended",
    ]);
    await sessions.close();
  });

  it.each([1, 2, 5, 100])(
    "streams no word of a reply that may be for nobody, %i characters at a time",
    async (pieceLength) => {
      const script = createScriptedModel();
      const { sessions } = workingAgents(script, {
        memoryFlush: { showInSystemPrompt: false },
        compaction: { background: false },
      });
      await using session = await sessions.open(key);
      const streamed = async (...texts: readonly string[]): Promise<string> => {
        let shown = "";
        script.push(...texts.map((text) => ({ text, pieceLength, usage: usageOf(14_600) })));
        await session.runTurn("And?", { onDelta: (delta) => (shown += delta.type === "text" ? delta.text : "") });
        return shown;
      };
      expect(await streamed("NO_REPLY is a word.")).toBe("");
      // The second one is the flush: its silent answer is followed by the one to the user.
      expect(await streamed("NO_REPLY", "Here it is.")).toBe("Here it is.");
      for (const text of ["NO", " NO_", "NO_REPLYING is one too.", "It says NO_REPLY.", "No. I did not.", "\n\nNo"]) {
        expect(await streamed(text)).toBe(text);
      }
      for (const text of ["NO_REPLY", "  NO_REPLY.", "\nNO_REPLY\nNothing to store."]) {
        expect(await streamed(text)).toBe("");
      }
      await sessions.close();
    },
  );
});
