import { describe, expect, it } from "vitest";
import { createScriptedModel } from "./scripted-model.ts";
import { scriptedAgents, working } from "./scripted-agents.ts";
import { key } from "./whole-turn-fixture.ts";

const impossible = { input: 4_281_798, output: 10, cacheRead: 0, cacheWrite: 0 };

describe("a count that the messages cannot have", () => {
  it("steers nothing when a provider states it", { tags: ["slow"] }, async () => {
    const script = createScriptedModel();
    const { sessions, names } = scriptedAgents(script, { summarizers: [working], compaction: { background: true } });
    const session = await sessions.open(key);
    for (let turn = 0; turn < 8; turn++) {
      script.push({ text: `Answer ${turn}.`, usage: impossible });
      await session.runTurn(`Question ${turn}`);
    }
    expect((await session.messages()).gauge.tokens).toBeLessThan(2000);
    expect(names(/^compaction|^guard.shrunk/)).toEqual([]);
    expect(script.requests.at(-1)?.messages).toHaveLength(15);
    await sessions.close();
  });

  it("steers nothing when another program stored it", async () => {
    const script = createScriptedModel();
    const { sessions, names } = scriptedAgents(script, { summarizers: [working] });
    const session = await sessions.open(key);
    const written = { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5" };
    for (let turn = 0; turn < 30; turn++)
      await session.append([
        { type: "message", message: { role: "user", content: `Question ${turn}` } },
        {
          type: "message",
          message: { role: "assistant", content: `Answer ${turn}.`, ...written, usage: impossible, stopReason: "stop" },
        },
      ]);
    expect((await session.messages()).gauge.tokens).toBeLessThan(5000);
    await session.runTurn("And now?");
    expect(names(/^compaction|^guard.shrunk/)).toEqual([]);
    expect(script.requests.at(-1)?.messages).toHaveLength(61);
    await sessions.close();
  });
});
