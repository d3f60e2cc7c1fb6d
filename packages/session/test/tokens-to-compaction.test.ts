import { describe, expect, it } from "vitest";
import { createScriptedModel } from "./scripted-model.ts";
import { createFixture, key } from "./session-fixture.ts";
import { scriptedSessions, usageOf } from "./scripted-sessions.ts";

const script = (): ReturnType<typeof createScriptedModel> =>
  createScriptedModel({ text: "one", usage: usageOf(4000) }, { text: "two", usage: usageOf(5000) });

describe("gauge.tokensToCompaction", () => {
  it("states how much is left until a compaction is due: after a turn, before one, in events and in the status", async () => {
    const seen: (number | null)[] = [];
    const { sessions } = scriptedSessions(script(), {
      system: ({ gauge }) => `Left: ${gauge.tokensToCompaction}`,
      onEvent: (event) => {
        if (event.name === "threshold.crossed") seen.push(event.gauge.tokensToCompaction);
      },
      warnAtPercents: [20],
    });
    await using session = await sessions.open(key);
    const { gauge } = await session.runTurn("Hello");
    const { compaction } = await session.status();
    expect(compaction.triggerTokens).toBe(15_000);
    expect(gauge.tokensToCompaction).toBe(15_000 - gauge.tokens);
    const next = await session.messages();
    expect(next.gauge.tokensToCompaction).toBe(15_000 - next.gauge.tokens);
    expect(next.system).toMatch(/^Left: 1\d{4}$/);
    const turn = await session.runTurn("More", { idempotencyKey: "k" });
    expect(seen).toEqual([expect.any(Number)]);
    const again = await session.runTurn("More", { idempotencyKey: "k" });
    expect(again).toMatchObject({ replayed: true, gauge: { tokensToCompaction: turn.gauge.tokensToCompaction } });
  });

  it("is null where nothing is compacted, and where no window is known", async () => {
    const plain = createFixture({ script: script() });
    await using session = await plain.sessions.open(key);
    expect((await session.runTurn("Hello")).gauge.tokensToCompaction).toBeNull();
    const chat = script();
    const unknown = scriptedSessions(chat, { model: { chat, modelId: "unheard-of", windowTokens: null } });
    await using other = await unknown.sessions.open(key);
    expect((await other.runTurn("Hello")).gauge).toMatchObject({ windowTokens: null, tokensToCompaction: null });
  });
});
