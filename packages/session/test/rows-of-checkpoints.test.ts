import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { StoredRecord } from "@throughline/core";
import type { AgentSession } from "../src/whole-turn/agent-session.ts";
import type { AgentSessionsOptions } from "../src/whole-turn/whole-turn-options.ts";
import { createJsonlStore } from "@throughline/store-jsonl";
import { until } from "@throughline/test-kit";
import { createScriptedModel, type ScriptedModel } from "./scripted-model.ts";
import {
  createManualClock,
  ofType,
  scriptedSessions,
  talk,
  textOf,
  usageOf,
  type ScriptedSessions,
} from "./scripted-sessions.ts";
import { allRecords, key } from "./whole-turn-fixture.ts";

type Settings = NonNullable<AgentSessionsOptions["checkpoint"]>;

const content = {
  summary: "They keep quays.\n\nNone is red.",
  topics: ["quays", "paint", "tides"],
  keyDecisions: ["no red paint"],
  openQuestions: ["which blue?"],
};

/** Writes at once, and counts. */
function counting(): { readonly writers: NonNullable<Settings["writers"]>; readonly count: () => number } {
  let count = 0;
  const write = (): Promise<string> => {
    count += 1;
    return Promise.resolve(JSON.stringify(content));
  };
  return { writers: [{ name: "counts", write }], count: () => count };
}

interface Made extends ScriptedSessions {
  readonly script: ScriptedModel;
  readonly session: AgentSession;
  readonly count: () => number;
  /** One turn, after which the prompt has so many tokens, and whatever follows it. */
  turn(tokens: number, text?: string): Promise<void>;
}

async function withCheckpoints(settings: Settings = {}, given: Partial<AgentSessionsOptions> = {}): Promise<Made> {
  const script = createScriptedModel();
  const { writers, count } = counting();
  const fixture = scriptedSessions(script, {
    model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 200_000, maxOutputTokens: 500 },
    checkpoint: { writers, ...settings },
    ...given,
  });
  const session = await fixture.sessions.open(key);
  let turns = 0;
  return {
    ...fixture,
    script,
    session,
    count,
    async turn(tokens, text = "And?") {
      script.push({ text: "Yes.", usage: usageOf(tokens - 10) });
      await session.runTurn(text);
      turns += 1;
      const over = (name: "checkpoint.written" | "checkpoint.failed"): number => fixture.all(name).length;
      await until(
        () =>
          fixture.all("step.finished").filter(({ step }) => step === "checkpoint").length === turns &&
          over("checkpoint.written") + over("checkpoint.failed") === fixture.all("checkpoint.started").length,
      );
    },
  };
}

const dueOf = ({ all }: Made): readonly (readonly [string, number | null])[] =>
  all("checkpoint.started").map(({ due, percent }) => [due, percent]);

describe("a checkpoint is due", () => {
  it("when the context crosses 25, 50 or 75 % of the window, one for the highest of several [CKP-03, C54]", async () => {
    const made = await withCheckpoints();
    for (const tokens of [30_000, 49_000, 51_000, 60_000, 155_000, 160_000]) await made.turn(tokens);
    expect(dueOf(made)).toEqual([
      ["tokens", 25],
      ["tokens", 75],
    ]);
    await made.sessions.close();
  });

  it("at other shares when it is told so", async () => {
    const made = await withCheckpoints({ tokenThresholdPercents: [10, 40] });
    for (const tokens of [10_000, 21_000, 51_000, 81_000]) await made.turn(tokens);
    expect(dueOf(made)).toEqual([
      ["tokens", 10],
      ["tokens", 40],
    ]);
    await made.sessions.close();
  });

  it("after every tenth message of the user, whichever comes first, and counts anew from any checkpoint [CKP-04, CKP-06, C21, C54]", async () => {
    const made = await withCheckpoints();
    const at: number[] = [];
    for (let turn = 1; turn <= 26; turn++) {
      await made.turn(turn < 4 ? 6000 : 51_000);
      if (made.all("checkpoint.written").length > at.length) at.push(turn);
    }
    // By its size after the fourth, and ten messages after each that was made.
    expect(at).toEqual([4, 14, 24]);
    expect(dueOf(made)).toEqual([
      ["tokens", 25],
      ["messages", null],
      ["messages", null],
    ]);
    await made.sessions.close();
  });

  it("after as many messages as are set", async () => {
    const made = await withCheckpoints({ turnThreshold: 3 });
    for (let turn = 1; turn <= 6; turn++) await made.turn(6000);
    expect(made.count()).toBe(2);
    await made.sessions.close();
  });

  it("not under 5000 tokens, or another floor [CKP-05, CKP-14, C22]", async () => {
    const made = await withCheckpoints({ turnThreshold: 1 });
    for (const tokens of [4000, 4900]) await made.turn(tokens);
    expect(made.count()).toBe(0);
    await made.turn(5100);
    expect(made.count()).toBe(1);
    await made.sessions.close();
    const other = await withCheckpoints({ turnThreshold: 1, minTokensForGen: 10_000 });
    await other.turn(9900);
    expect(other.count()).toBe(0);
    await other.turn(10_100);
    expect(other.count()).toBe(1);
    await other.sessions.close();
  });

  it("by default, of the model that answers; switched off, nobody is ever asked", async () => {
    const script = createScriptedModel();
    const { sessions, all } = scriptedSessions(script, { checkpoint: {} });
    await using session = await sessions.open(key);
    await talk(session, script, { turns: 4 });
    script.push({ text: "Answer.", usage: usageOf(5400) }, JSON.stringify(content));
    await session.runTurn("And?");
    await until(() => all("checkpoint.written").length === 1);
    expect(all("checkpoint.written")).toMatchObject([{ writer: "anthropic/claude-sonnet-4-5" }]);
    await sessions.close();
    const off = await withCheckpoints({ enabled: false, turnThreshold: 1 });
    for (const tokens of [60_000, 120_000, 160_000]) await off.turn(tokens);
    expect(off.count()).toBe(0);
    expect(off.script.requests).toHaveLength(3);
    await off.sessions.close();
  });

  it("when the caller's own detection finds another topic, and not under the floor of tokens", async () => {
    const seen: unknown[] = [];
    const made = await withCheckpoints({
      topicChanged: async ({ ref, turnId, gauge, records }) => {
        const messages = (await records()).filter(({ type }) => type === "message");
        seen.push([ref.key, turnId !== "", gauge.tokens]);
        return JSON.stringify(messages.at(-2)?.record).includes("Something else");
      },
    });
    await made.turn(4000, "Something else: tides.");
    await made.turn(6000, "And quays?");
    expect(made.count()).toBe(0);
    await made.turn(7000, "Something else: paint.");
    expect(dueOf(made)).toEqual([["topic", null]]);
    expect(made.count()).toBe(1);
    await made.turn(8000, "Which?");
    expect(made.count()).toBe(1);
    expect(seen.map((one) => (one as unknown[]).slice(0, 2))).toEqual(Array.from({ length: 4 }, () => [key, true]));
    await made.sessions.close();
  });

  it("by its size also where that detection fails, which is an event", async () => {
    const made = await withCheckpoints({
      topicChanged: () => {
        throw new Error("no embeddings");
      },
    });
    made.script.push({ text: "Yes.", usage: usageOf(51_000) });
    await made.session.runTurn("And?");
    await until(() => made.all("checkpoint.written").length === 1);
    expect(dueOf(made)).toEqual([["tokens", 25]]);
    await until(() => made.all("step.failed").length === 1);
    expect(made.all("step.failed")).toMatchObject([{ step: "checkpoint", cause: { message: "no embeddings" } }]);
    await made.sessions.close();
  });

  it("by no detection where there are no checkpoints: such a setting is refused", () => {
    const given = { topicChanged: () => true, enabled: false };
    expect(() => scriptedSessions(createScriptedModel(), { checkpoint: given })).toThrow(/checkpoint\.topicChanged/);
  });

  it("not because the talk turns to something else", async () => {
    const made = await withCheckpoints();
    await made.turn(6000);
    await made.turn(6200, "Something entirely different: how do I bake bread?");
    await made.turn(6300);
    expect(made.count()).toBe(0);
    await made.sessions.close();
  });
});

describe("what a checkpoint is", () => {
  it("a record of the session with what was said and what it covers; no message goes or is hidden", async () => {
    const made = await withCheckpoints({ turnThreshold: 3 });
    await made.turn(6000);
    await made.turn(6500);
    const before = await allRecords(made.store);
    await made.turn(7000);
    const after = await allRecords(made.store);
    expect(after.slice(0, before.length)).toEqual(before);
    const messages = after.filter(({ type }) => type === "message");
    const [record] = ofType(after, "checkpoint");
    expect(record?.["checkpoint"]).toMatchObject({
      ...content,
      tokensAtCheckpoint: 7000,
      messageCountAtCheckpoint: 6,
      coversToId: messages.at(-1)?.id,
    });
    await made.turn(7500);
    // The next request has all that was said, and nothing of the checkpoint.
    const sent = textOf(made.script.requests.at(-1));
    expect(sent.match(/And\?/g)).toHaveLength(4);
    expect(sent.match(/Yes\./g)).toHaveLength(3);
    expect(sent).not.toContain("They keep quays.");
    await made.sessions.close();
  });

  it("asked of the model as JSON, whose reply is read leniently", async () => {
    const replies = [
      `Here it is:\n\`\`\`json\n${JSON.stringify({ Summary: content.summary, topics: "- quays\n- paint", decisions: content.keyDecisions, questions: content.openQuestions })}\n\`\`\`\nDone.`,
      "They keep quays. None is red. That is where it stands, and nothing else was said.",
    ];
    const checkpoints: unknown[] = [];
    for (const reply of replies) {
      const script = createScriptedModel({ text: "Yes.", usage: usageOf(6000) }, reply);
      const { sessions, store, all } = scriptedSessions(script, { checkpoint: { turnThreshold: 1 } });
      await using session = await sessions.open(key);
      await session.runTurn("And?");
      await until(() => all("checkpoint.written").length === 1);
      const prompt = textOf(script.requests.at(-1));
      for (const asked of ["two to four paragraphs", "three to seven", "keyDecisions", "openQuestions", "JSON"])
        expect(prompt).toContain(asked);
      checkpoints.push(ofType(await allRecords(store), "checkpoint")[0]?.["checkpoint"]);
      await sessions.close();
    }
    expect(checkpoints).toMatchObject([
      { ...content, topics: ["quays", "paint"] },
      { summary: replies[1], topics: [], keyDecisions: [], openQuestions: [] },
    ]);
  });

  it("lies in the session's own file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "checkpoint-rows-"));
    try {
      await using store = createJsonlStore({ root: folder });
      const made = await withCheckpoints({ turnThreshold: 1 }, { store });
      await made.turn(6000);
      await made.sessions.close();
      const holding = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
        (path) => path.endsWith(".jsonl") && readFileSync(join(folder, path), "utf8").includes("They keep quays."),
      );
      expect(holding).toHaveLength(1);
      expect(holding[0]).toContain(made.session.sessionId);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("ends with its session: the new one under the key has none, and its model hears nothing of it", async () => {
    const made = await withCheckpoints({ turnThreshold: 1 });
    await made.turn(6000);
    expect((await made.session.checkpoints()).checkpoints).toHaveLength(1);
    await made.session.reset();
    const { checkpoints, status } = await made.session.checkpoints();
    expect(checkpoints).toEqual([]);
    expect(status).toMatchObject({ lastId: null });
    expect(await made.session.inherit()).toMatchObject({ kind: "nothing" });
    await made.turn(500);
    expect(textOf(made.script.requests.at(-1))).not.toContain("They keep quays.");
    await made.sessions.close();
  });
});

describe("the making of a checkpoint", () => {
  it("goes on beside the turns, at most ten minutes, and no turn waits for it", async () => {
    const clock = createManualClock(Date.UTC(2026, 4, 1));
    const script = createScriptedModel();
    const hangs = { name: "hangs", write: (): Promise<string> => new Promise(() => {}) };
    const { sessions, store, all } = scriptedSessions(script, {
      clock,
      checkpoint: { turnThreshold: 1, minTokensForGen: 0, writers: [hangs] },
    });
    const session = await sessions.open(key);
    for (let at = 1; at <= 5; at++) {
      script.push({ text: `Answer ${at}.`, usage: usageOf(6000) });
      // The clock stands still: whatever waited for anything would wait for ever.
      expect((await session.runTurn("And?")).text).toBe(`Answer ${at}.`);
    }
    expect(all("checkpoint.started")).toHaveLength(1);
    await until(() => clock.sleeps().includes(600_000));
    clock.advance(599_999);
    await session.runTurn("Still?");
    expect(all("checkpoint.failed")).toEqual([]);
    clock.advance(1);
    await until(() => all("checkpoint.failed").length === 1);
    expect(ofType(await allRecords(store), "checkpoint")).toEqual([]);
    await sessions.close();
  });

  it("asks the cheaper model first, and the next one when it fails", async () => {
    const second = counting();
    const asked: string[] = [];
    const made = await withCheckpoints({
      turnThreshold: 1,
      writers: [
        { name: "cheap", write: () => Promise.reject(new Error(`no server there: ${asked.push("cheap")}`)) },
        ...second.writers,
      ],
    });
    await made.turn(6000);
    expect([asked, second.count()]).toEqual([["cheap"], 1]);
    expect(made.all("checkpoint.writer-failed")).toMatchObject([{ writer: "cheap" }]);
    const records: readonly StoredRecord[] = await allRecords(made.store);
    expect(ofType(records, "checkpoint")).toMatchObject([{ checkpoint: { model: "counts" } }]);
    await made.sessions.close();
  });
});
