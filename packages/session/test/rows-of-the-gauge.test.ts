import { describe, expect, it } from "vitest";
import type { MessageDraft, NewMessage } from "@throughline/core/internal";
import { createSessions, type SessionsOptions, type SessionTurnEvent } from "@throughline/session";
import { createMemoryStore } from "@throughline/store-memory";
import { createTokenEstimator, type TokenEstimator } from "@throughline/tokens";
import type { CountMethod } from "@throughline/tokens/internal";
import { createScriptedModel, type ScriptedReply } from "./scripted-model.ts";
import { scriptedSessions, usageOf, words } from "./scripted-sessions.ts";
import { echoTool, key } from "./session-fixture.ts";

type Estimate = Extract<SessionTurnEvent, { name: "guard.attempt" }>["estimate"];

const messageDraft = (message: unknown): MessageDraft => ({ type: "message", message: message as NewMessage });

/** An estimator that counts in one way, whatever the model. */
function countingBy(method: CountMethod): TokenEstimator {
  const { work, counterFor } = createTokenEstimator();
  return { work, counterFor: (model) => counterFor(model, { method }) };
}

/** The size of a session with these messages, before anything was asked. */
async function sizeOf(messages: readonly unknown[], options: Partial<SessionsOptions> = {}): Promise<number> {
  await using sessions = createSessions({
    store: createMemoryStore(),
    model: { chat: createScriptedModel(), modelId: "claude-sonnet-4-5" },
    ...options,
  });
  await using session = await sessions.open(key);
  await session.append(messages.map(messageDraft));
  return (await session.messages()).gauge.tokens;
}

describe("the heuristic estimator", () => {
  const estimator = countingBy("chars4");
  const said = (text: string): unknown => ({ role: "user", content: [{ type: "text", text }] });

  it("gives a token for every four characters, rounded down, and counts images and tool calls too [TOK-01, C33]", async () => {
    const of = (length: number): Promise<number> => sizeOf([said("x".repeat(length))], { estimator });
    const base = await of(4000);
    expect([await of(4001), await of(4003), await of(4004), await of(8000)]).toEqual([
      base,
      base,
      base + 1,
      base + 1000,
    ]);
    const image = { type: "image", data: "iVBORw0KGgo".padEnd(4000, "A"), mimeType: "image/png" };
    const withImage = await sizeOf([{ role: "user", content: [{ type: "text", text: "x".repeat(4000) }, image] }], {
      estimator,
    });
    expect(withImage).toBeGreaterThan(base + 100);
    const call = (length: number): unknown => ({
      role: "assistant",
      content: [{ type: "toolCall", id: "call_1", name: "read", arguments: { path: "p".repeat(length) } }],
      provider: "anthropic",
      model: "claude-sonnet-4-5",
      stopReason: "toolUse",
    });
    const grown =
      (await sizeOf([said("Hi"), call(4400)], { estimator })) - (await sizeOf([said("Hi"), call(400)], { estimator }));
    expect(grown).toBe(1000);
  });
});

describe("the estimator before a turn", () => {
  const estimateOf = async (modelId: string, text: string, api: "anthropic" | "openai"): Promise<Estimate> => {
    const events: SessionTurnEvent[] = [];
    const answer = createScriptedModel();
    const chat = api === "anthropic" ? answer : { ...answer, provider: "openai", api: "openai", chat: openAiChat };
    await using sessions = createSessions({
      store: createMemoryStore(),
      model: { chat, modelId },
      onEvent: (event) => events.push(event),
    });
    await using session = await sessions.open(key);
    await session.runTurn(text);
    const [attempt] = events.filter((event) => event.name === "guard.attempt");
    if (attempt === undefined) throw new Error("no call was made");
    return attempt.estimate;
  };
  const openAiChat: ReturnType<typeof createScriptedModel>["chat"] = ({ modelId: model }) => {
    const message = { role: "assistant", content: "ok", provider: "openai", model, stopReason: "stop" } as const;
    return Promise.resolve({ message, stopReason: "stop", usage: null } as never);
  };

  it(
    "has the vocabulary of the model: cl100k, o200k and Claude's each count for themselves [TOK-02, C33]",
    { tags: ["slow"] },
    async () => {
      // Four tokens of cl100k_base are one of o200k_base; a character for four tokens would be 3000.
      const text = "ગુજરાતી ".repeat(1500);
      const [cl100k, o200k, claude] = [
        await estimateOf("gpt-4", text, "openai"),
        await estimateOf("gpt-4o", text, "openai"),
        await estimateOf("claude-sonnet-4-5", text, "anthropic"),
      ];
      expect([cl100k.source, o200k.source, claude.source]).toEqual(["tokenizer", "tokenizer", "tokenizer"]);
      expect(new Set([cl100k.tokens, o200k.tokens, claude.tokens]).size).toBe(3);
      expect(cl100k.tokens).toBeGreaterThan(o200k.tokens * 2);
      // " hello" is one token of cl100k_base, and six characters.
      const plain = await estimateOf("gpt-4", " hello".repeat(4000), "openai");
      expect(plain.tokens).toBeGreaterThanOrEqual(4000);
      expect(plain.tokens).toBeLessThan(4100);
    },
  );

  it("allows for a fifth more until it is calibrated, and learns from what the provider counted [C33]", async () => {
    const first = await estimateOf("gpt-4", " hello".repeat(4000), "openai");
    expect(first.highTokens / first.tokens).toBeGreaterThan(1.19);
    expect(first.highTokens / first.tokens).toBeLessThan(1.21);
    const script = createScriptedModel();
    const { sessions } = scriptedSessions(script, {
      model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 1_000_000 },
    });
    const session = await sessions.open(key);
    const text = words;
    const addedBy = async (): Promise<number> => {
      const before = (await session.messages()).gauge.tokens;
      await session.append([messageDraft({ role: "user", content: text })]);
      return (await session.messages()).gauge.tokens - before;
    };
    const uncalibrated = await sizeOf([{ role: "user", content: text }]);
    for (let at = 1; at <= 24; at++) {
      // Half as much again as is estimated without a calibration.
      const reply: ScriptedReply = { text: "Yes.", usage: usageOf(Math.round(uncalibrated * 1.5 * at)) };
      script.push(reply);
      await session.runTurn(text);
    }
    const ratio = (await addedBy()) / uncalibrated;
    expect(ratio).toBeGreaterThan(1.25);
    expect(ratio).toBeLessThan(1.55);
    await sessions.close();
  });
});

describe("how full a window is", () => {
  it("is known of a session at any time, or said to be unknown", async () => {
    const script = createScriptedModel();
    for (const windowTokens of [200_000, null, 0]) {
      const { sessions } = scriptedSessions(script, {
        model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens },
      });
      const session = await sessions.open(key);
      const empty = (await session.status()).gauge;
      script.push({ text: "Yes.", usage: usageOf(156_000) });
      const { gauge } = await session.runTurn("And?");
      const after = (await session.status()).gauge;
      const known = windowTokens === 200_000;
      expect(empty.windowTokens).toBe(known ? 200_000 : null);
      expect(empty.tokens).toBeLessThan(1000);
      expect([gauge.tokens, after.tokens]).toEqual([156_010, 156_010]);
      expect(after.displayPercent).toBe(known ? 78.005 : null);
      await sessions.close();
    }
    // A model that states its window is believed.
    const stated = { ...script, windowTokens: () => Promise.resolve(123_456) };
    const { sessions } = scriptedSessions(script, { model: { chat: stated, modelId: "claude-sonnet-4-5" } });
    const session = await sessions.open(key);
    expect((await session.runTurn("And?")).gauge.windowTokens).toBe(123_456);
    await sessions.close();
  });

  it("can stand in the system prompt, in thousands and percent that are rounded down", async () => {
    const script = createScriptedModel();
    const { sessions } = scriptedSessions(script, {
      model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 200_000 },
      showContextLine: true,
    });
    const session = await sessions.open(key);
    const lines: unknown[] = [];
    for (const tokens of [156_800, 157_900]) {
      script.push({ text: "Yes.", usage: usageOf(tokens) });
      await session.runTurn("And?");
      lines.push((await session.messages()).system);
    }
    expect(lines).toEqual([
      "Be kind.\n\n[Context: 156k/200k tokens (78%)]",
      "Be kind.\n\n[Context: 157k/200k tokens (78%)]",
    ]);
    await session.runTurn("And?");
    expect(script.requests.at(-1)?.system).toBe(lines.at(-1));
    await sessions.close();
  });

  it("is one number in the system prompt and in the status, system prompt and tools included", async () => {
    const script = createScriptedModel({ text: "Yes.", usage: usageOf(156_000) });
    const { sessions } = scriptedSessions(script, {
      model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 200_000 },
      system: words,
      showContextLine: true,
    });
    const session = await sessions.open(key);
    await session.runTurn("And?");
    const size = Number(/Context: (\d+)k/.exec(String(script.requests[0]?.system))?.[1]);
    expect(size).toBeGreaterThanOrEqual(1);
    expect((await session.status()).gauge.tokens).toBe(156_010);
    expect((await session.messages()).system).toContain("[Context: 156k/200k tokens (78%)]");
    await session.runTurn("And?");
    expect(script.requests[1]?.system).toContain("[Context: 156k/200k tokens (78%)]");
    await sessions.close();
  });

  it("starts from the last count in a new process too, whatever became of the system prompt, and never after a compaction", async () => {
    const store = createMemoryStore();
    const opened = async (options: Partial<SessionsOptions>, reply?: ScriptedReply) => {
      const script = createScriptedModel(...(reply === undefined ? [] : [reply]));
      const model = { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 200_000 };
      const sessions = createSessions({ store, model, ...options });
      return { sessions, session: await sessions.open(key) };
    };
    const first = await opened({ system: "Be kind." }, { text: "Yes.", usage: usageOf(90_000) });
    await first.session.runTurn("And?");
    const { tokens } = (await first.session.messages()).gauge;
    await first.sessions.close();
    const gaugeWith = async (options: Partial<SessionsOptions>) => {
      const { sessions, session } = await opened(options);
      const { gauge } = await session.messages();
      await sessions.close();
      return gauge;
    };
    const counter = await createTokenEstimator().counterFor({ provider: "scripted", modelId: "claude-sonnet-4-5" });
    expect((await gaugeWith({ system: "Be kind." })).tokens).toBe(tokens);
    const longer = await gaugeWith({ system: `Be kind. ${words}` });
    expect(longer.tokens - tokens).toBeGreaterThan(counter.countText(words) * 0.9);
    expect(longer.tokens - tokens).toBeLessThan(counter.countText(words) * 1.5);
    expect((await gaugeWith({})).tokens).toBeLessThan(tokens);
    expect((await gaugeWith({ system: "Be kind.", tools: [echoTool] })).tokens).toBeGreaterThan(tokens);
    const { sessions } = scriptedSessions(createScriptedModel(...Array.from({ length: 8 }, () => "Yes.")), { store });
    const session = await sessions.open(key);
    for (let turn = 0; turn < 8; turn++) await session.runTurn(words);
    expect(await session.compact()).toMatchObject({ kind: "compacted" });
    await sessions.close();
    const compacted = await gaugeWith({ system: "Be kind." });
    expect(compacted.source).not.toContain("actual");
    expect((await gaugeWith({ system: `Be kind. ${words}` })).tokens).toBeGreaterThan(compacted.tokens);
  });

  it("leaves room for the answer and a margin: 180,000 of 200,000 tokens [C38b]", { tags: ["slow"] }, async () => {
    const targets: unknown[] = [];
    const target = async (maxOutputTokens: number): Promise<void> => {
      const error = Object.assign(new Error("prompt is too long: 210000 tokens > 200000 maximum"), { status: 400 });
      await using sessions = createSessions({
        store: createMemoryStore(),
        model: {
          chat: createScriptedModel({ error }),
          modelId: "claude-sonnet-4-5",
          windowTokens: 200_000,
          maxOutputTokens,
        },
        compact: ({ targetTokens }) => {
          targets.push(targetTokens);
          return Promise.resolve(false);
        },
      });
      await using session = await sessions.open(key);
      // What the provider counted corrects the estimate, so that no room is left for that.
      await expect(session.runTurn(words.repeat(120))).rejects.toMatchObject({ code: "CONTEXT_OVERFLOW" });
    };
    await target(8192);
    await target(32_000);
    expect(targets).toEqual([180_000, 164_000]);
  });
});
