import { resetSession } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";
import { createScriptedModel } from "./scripted-model.ts";
import { scriptedSessions, usageOf, words } from "./scripted-sessions.ts";
import { createFixture, key } from "./session-fixture.ts";

describe("the transcript of a session", () => {
  it("has the messages in the neutral shape, with their records", async () => {
    const script = createScriptedModel({ calls: [{ id: "c1", name: "echo", arguments: { text: "ada" } }] }, "Done.");
    const { sessions, records } = createFixture({ script });
    await using session = await sessions.open(key);
    expect(await session.transcript()).toMatchObject({ headId: null, summaryId: null, messages: [] });
    await session.runTurn("Say ada.");
    const transcript = await session.transcript();
    expect(transcript).toMatchObject({ sessionId: session.sessionId, headId: session.head.headId, summaryId: null });
    expect(transcript.messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult", "assistant"]);
    const stored = (await records()).filter(({ type }) => type === "message");
    expect(transcript.messages.map(({ recordId, seq }) => [recordId, seq])).toEqual(
      stored.map(({ id, seq }) => [id, seq]),
    );
    expect(await session.transcript({ all: true })).toEqual(transcript);
  });

  it("starts with the summary, and with `all` has what the summary replaced", async () => {
    const script = createScriptedModel();
    const works = {
      summarize: async () => ({ summary: `They spoke of ada. ${words.slice(0, 400)}`, usage: null }),
    };
    const { sessions } = scriptedSessions(script, { summarizers: [works as never] });
    await using session = await sessions.open(key);
    for (let turn = 0; turn < 6; turn++) {
      script.push({ text: `Answer ${turn}.`, usage: usageOf(3000) });
      await session.runTurn(`Question ${turn}? ${words}`);
    }
    const before = await session.transcript();
    expect(before.messages).toHaveLength(12);
    expect(await session.compact()).toMatchObject({ kind: "compacted" });
    const after = await session.transcript();
    expect(after.summaryId).not.toBeNull();
    expect(after.messages[0]).toMatchObject({ role: "compactionSummary" });
    expect(after.messages.length).toBeLessThan(12);
    const all = await session.transcript({ all: true });
    expect(all.summaryId).toBeNull();
    expect(all.messages).toEqual(before.messages);
    expect(all.headId).toBe(after.headId);
  });

  it("is refused of a session that was closed or replaced", async () => {
    const { sessions, store } = createFixture({ script: createScriptedModel("Hello.") });
    const session = await sessions.open(key);
    await session.runTurn("Hello");
    await resetSession(store, session.ref);
    await expect(session.transcript()).rejects.toMatchObject({ code: "SESSION_REPLACED" });
    await session.acceptReset();
    expect((await session.transcript()).messages).toEqual([]);
    await session.close();
    await expect(session.transcript()).rejects.toMatchObject({ code: "SESSION_CLOSED" });
  });
});
