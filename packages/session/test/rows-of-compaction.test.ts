import { describe, expect, it } from "vitest";
import type { SessionDraft } from "@throughline/core/internal";
import type { Summarizer, SummaryRequest } from "@throughline/core";
import type { Session } from "@throughline/session";
import type { AgentSessionsOptions } from "../src/whole-turn/whole-turn-options.ts";
import { createScriptedModel, type ScriptedModel } from "./scripted-model.ts";
import { ofType, scriptedSessions, talk, textOf, usageOf, words } from "./scripted-sessions.ts";
import { allRecords, key, workingSummary } from "./whole-turn-fixture.ts";

const works: Summarizer = {
  summarize: () => Promise.resolve({ summary: workingSummary(1), source: "works", usage: null }),
};

/** A summarizer and what it was given. */
function listening(): { readonly summarizer: Summarizer; readonly given: SummaryRequest[] } {
  const given: SummaryRequest[] = [];
  const summarizer: Summarizer = {
    summarize: (request) => {
      given.push(request);
      return Promise.resolve({ summary: workingSummary(given.length), source: "listens", usage: null });
    },
  };
  return { summarizer, given };
}

const windowOf = (script: ScriptedModel, windowTokens: number | null): Pick<AgentSessionsOptions, "model"> => ({
  model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens, maxOutputTokens: 500 },
});

/** Messages of user and agent in turn, beside any turn. */
async function fill(session: Session, messages: number, text: string): Promise<void> {
  const draft = (at: number): SessionDraft =>
    at % 2 === 1
      ? { type: "message", message: { role: "user", content: `Message ${at}: ${text}` } }
      : {
          type: "message",
          message: {
            role: "assistant",
            content: [{ type: "text", text: `Message ${at}: ${text}` }],
            provider: "anthropic",
            model: "claude-sonnet-4-5",
            stopReason: "stop",
          },
        };
  await session.append(Array.from({ length: messages }, (_, index) => draft(index + 1)));
}

/** Two turns; before the second the provider has counted this many tokens. */
async function reach(session: Session, script: ScriptedModel, tokens: number): Promise<void> {
  script.push({ text: "Yes.", usage: usageOf(tokens) });
  await session.runTurn("And this?");
  await session.runTurn("And now?");
}

describe("when a compaction is due", () => {
  it("it is at 170,000 of 200,000 tokens, and not at 169,999 [CMP-01, C23]", { tags: ["slow"] }, async () => {
    const compactedAt = new Map<number, boolean>();
    for (let input = 169_920; !compactedAt.has(170_001) && input < 170_100;) {
      const script = createScriptedModel();
      let asked = 0;
      const { sessions, all } = scriptedSessions(script, {
        ...windowOf(script, 200_000),
        steps: [{ name: "look", when: "before-call", run: async ({ gauge }) => void (asked = gauge.tokens) }],
      });
      const session = await sessions.open(key);
      await fill(session, 8, "A few words. ".repeat(20));
      await reach(session, script, input);
      const [planned] = all("compaction.planned");
      const tokens = planned?.tokensBefore ?? asked;
      compactedAt.set(tokens, planned !== undefined);
      input += Math.max(1, 169_998 - tokens);
      await sessions.close();
    }
    expect([...compactedAt].filter(([tokens]) => tokens >= 169_998 && tokens <= 170_001)).toEqual([
      [169_998, false],
      [169_999, false],
      [170_000, true],
      [170_001, true],
    ]);
  });

  it("its threshold can be set, down to a floor, and it cannot be switched off [CMP-12, C23]", async () => {
    const triggerOf = async (
      windowTokens: number,
      compaction: AgentSessionsOptions["compaction"],
    ): Promise<unknown> => {
      const script = createScriptedModel();
      const { sessions } = scriptedSessions(script, {
        ...windowOf(script, windowTokens),
        compaction: compaction ?? {},
      });
      await using session = await sessions.open(key);
      return (await session.status()).compaction.triggerTokens;
    };
    expect(await triggerOf(200_000, {})).toBe(170_000);
    expect(await triggerOf(200_000, { reserveTokens: 45_000 })).toBe(155_000);
    expect(await triggerOf(200_000, { reserveTokens: 4000 })).toBe(180_000);
    // A reserve takes a quarter of a small window at most.
    expect(await triggerOf(20_000, {})).toBe(15_000);
    const script = createScriptedModel();
    const off = { enabled: false } as AgentSessionsOptions["compaction"];
    expect(() => scriptedSessions(script, { compaction: off ?? {} })).toThrow("`compaction.enabled` is not an option");
    const compaction = { background: false };
    const { sessions, all } = scriptedSessions(script, { summarizers: [works], compaction });
    await using session = await sessions.open(key);
    await talk(session, script, { turns: 13 });
    await session.runTurn(`And now? ${words}`);
    expect(all("compaction.applied")).toHaveLength(1);
    await sessions.close();
  });

  it("without a window it is by the number of messages, no percentage is known, and nothing is made at one [C55]", async () => {
    const script = createScriptedModel();
    let written = 0;
    const { sessions, all } = scriptedSessions(script, {
      ...windowOf(script, null),
      summarizers: [works],
      checkpoint: {
        turnThreshold: 1000,
        writers: [{ name: "w", write: () => Promise.resolve(String((written += 1))) }],
      },
    });
    await using session = await sessions.open(key);
    await fill(session, 496, "A few words. ".repeat(20));
    script.push({ text: "Yes.", usage: usageOf(90_000) });
    await session.runTurn("And this?");
    expect(all("compaction.planned")).toEqual([]);
    const { gauge } = await session.status();
    expect(gauge).toMatchObject({ windowTokens: null, percent: null, displayPercent: null, tokensToCompaction: null });
    await session.runTurn("And that?");
    await session.runTurn("And now?");
    expect(all("compaction.applied")).toMatchObject([{ source: "model" }]);
    expect(written).toBe(0);
    await sessions.close();
  });
});

describe("what a compaction replaces", () => {
  it("is what its summary was made of, with the summary before, and nothing that stays", async () => {
    const script = createScriptedModel();
    const { summarizer, given } = listening();
    const { sessions, store, all } = scriptedSessions(script, { summarizers: [summarizer] });
    await using session = await sessions.open(key);
    const counts: unknown[] = [];
    for (let round = 0; round < 2; round++) {
      await talk(session, script, { turns: 13 });
      await session.runTurn(`Round ${round} is over. ${words}`);
      counts.push(session.entry.compactionCount);
    }
    expect(all("compaction.applied")).toHaveLength(2);
    expect(counts).toEqual([1, 2]);
    const records = await allRecords(store);
    let from = 1;
    for (const [index, compaction] of ofType(records, "compaction").entries()) {
      const keptSeq = records.find(({ id }) => id === compaction["firstKeptEntryId"])?.seq ?? 0;
      const messages = records.filter(({ type, side }) => type === "message" && !side);
      const removed = messages.filter(({ seq }) => seq >= from && seq < keptSeq);
      const { text = "", previousSummary } = given[index] ?? {};
      // One label for each message that went, and each of them in the text.
      expect(text.match(/^\[(?:User|Assistant)\]: /gm)).toHaveLength(removed.length);
      expect(text.match(/(?:Question|Answer) \d+/g)).toEqual(
        removed.flatMap(({ record }) => JSON.stringify(record).match(/(?:Question|Answer) \d+/g) ?? []),
      );
      expect(previousSummary).toBe(index === 0 ? null : workingSummary(1));
      from = keptSeq;
    }
    await sessions.close();
  });

  /** Fills a window over the point at which it is compacted, and takes one turn. */
  const keptOf = async (options: {
    readonly messages: number;
    /** How often the words are said in each. */
    readonly repeat: number;
    readonly windowTokens: number;
    readonly compaction?: AgentSessionsOptions["compaction"];
    readonly summarizers?: readonly Summarizer[];
  }): Promise<{ readonly kept: number; readonly tokens: number; readonly sent: string }> => {
    const script = createScriptedModel();
    const { messages, repeat, windowTokens, compaction = {}, summarizers = [works] } = options;
    const { sessions, store, all } = scriptedSessions(script, {
      ...windowOf(script, windowTokens),
      summarizers,
      compaction: { background: false, ...compaction },
    });
    const session = await sessions.open(key);
    await fill(session, messages, "these are the words of it ".repeat(repeat));
    const { gauge } = await session.messages();
    await session.runTurn("And now?");
    await sessions.close();
    expect(all("compaction.applied")).toHaveLength(1);
    const records = await allRecords(store);
    const at = records.findIndex(({ type }) => type === "compaction");
    const { record } = records[at] ?? {};
    const spoken = records.slice(0, at).filter(({ type }) => type === "message");
    const kept = spoken.length - Number(record?.["messagesRemoved"]);
    return { kept, tokens: (gauge.tokens * kept) / messages, sent: textOf(script.requests.at(-1)) };
  };
  const noFloors = { minMessages: 0, keepRecentTokens: 0 };

  it("leaves a tenth of the messages, and a fifth where no model wrote the summary", { tags: ["slow"] }, async () => {
    const many = { messages: 400, repeat: 70, windowTokens: 200_000, compaction: noFloors };
    const normal = await keptOf(many);
    // The cut moves to a user message.
    expect([41, 42]).toContain(normal.kept);
    const emergency = await keptOf({ ...many, summarizers: [] });
    expect([81, 82]).toContain(emergency.kept);
    expect(normal.sent).toContain("Message 400: ");
    expect(normal.sent).not.toContain("Message 300: ");
    expect(emergency.sent).toContain("Message 330: ");
  });

  it("leaves at least 20 messages [C27]", async () => {
    const { kept } = await keptOf({
      messages: 100,
      repeat: 280,
      windowTokens: 200_000,
      compaction: { keepRecentTokens: 0 },
    });
    expect(kept).toBe(20);
  });

  it("leaves the newest 20,000 tokens, a quarter of a small window, whatever the counts of messages say [C27]", async () => {
    const large = await keptOf({ messages: 100, repeat: 280, windowTokens: 200_000, compaction: { minMessages: 0 } });
    expect(large.tokens).toBeGreaterThan(20_000);
    expect(large.tokens).toBeLessThan(26_000);
    // 20 messages would have 16,000 tokens.
    const small = await keptOf({ messages: 20, repeat: 120, windowTokens: 20_000 });
    expect(small.kept).toBeGreaterThan(3);
    expect(small.kept).toBeLessThan(8);
  });
});
