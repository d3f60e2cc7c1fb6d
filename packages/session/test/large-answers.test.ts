import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AssistantMessage, ChatModel, SessionStore, AgentTool } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";

import { testSize } from "../../../tools/test-size.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { createFixture, key, modelId, outline } from "./session-fixture.ts";

const large = 20 * 1024 * 1024;
const limit = 16 * 1024 * 1024;
const mark = /\[\d+ of 20971520 characters are left out here: the text is too long to be kept whole\.\]/;
/** Measured by characters: a tokenizer would take longer than the test may. */
const model = { modelId, windowTokens: 100_000_000 };

const little = 400_000;
/** A store whose records are small, so that the texts need not be large. */
const narrow = (): SessionStore => createMemoryStore({ limits: { recordBytes: 256 * 1024 } });

let folder = "";
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "large-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const stores: readonly (readonly [string, () => SessionStore])[] = [
  ["memory", () => createMemoryStore()],
  ["sqlite", () => createSqliteStore({ path: join(folder, `${files++}.db`) })],
];

const facts = { api: "anthropic-messages", provider: "anthropic", model: modelId };

/** A model that says this, or fails after it, or stops when it is aborted. */
function saying(content: AssistantMessage["content"], end: "whole" | "fails" | "hangs"): ChatModel {
  const said = { role: "assistant" as const, content, ...facts };
  return {
    provider: "anthropic",
    api: "anthropic",
    async chat({ onPartial, signal }) {
      if (end === "whole") return { message: { ...said, stopReason: "stop" }, stopReason: "stop", usage: null };
      if (end === "hangs") await new Promise((resolve) => signal?.addEventListener("abort", resolve, { once: true }));
      onPartial?.({ ...said, stopReason: end === "fails" ? "error" : "aborted" });
      throw new Error("The connection broke.");
    },
  };
}

// In the short tier the store with a limit of its own below that of records.
describe.each(testSize({ short: stores.slice(1), long: stores }))(
  "what is too large for a record, over store-%s",
  (_, create) => {
    const text = [{ type: "text" as const, text: "x".repeat(large) }];

    it("an answer is kept up to a bound, with a mark, and the turn is done", { tags: ["slow"] }, async () => {
      const { sessions, records } = createFixture({
        store: create(),
        model: { ...model, chat: saying(text, "whole") },
      });
      await using session = await sessions.open(key);
      const turn = await session.runTurn("Go");
      expect(turn).toMatchObject({ outcome: "done", stopReason: "stop" });
      expect(turn.text).toMatch(mark);
      expect(turn.text.length).toBeGreaterThan(limit - 128 * 1024);
      expect(outline(await records())).toEqual(["turn:open", "user", "assistant:stop", "call:answered", "turn:done"]);
    });

    it("so is what came before the provider failed, and before an abort", { tags: ["slow"] }, async () => {
      const failing = createFixture({ store: create(), model: { ...model, chat: saying(text, "fails") } });
      await using session = await failing.sessions.open(key);
      await expect(session.runTurn("Go")).rejects.toMatchObject({ code: "MODEL_FAILED" });
      const kept = await failing.records();
      expect(outline(kept)).toEqual(["turn:open", "user", "assistant:error", "call:failed", "turn:failed"]);
      expect(JSON.stringify(kept[2]?.record)).toMatch(mark);
      const hanging = createFixture({ store: create(), model: { ...model, chat: saying(text, "hangs") } });
      await using other = await hanging.sessions.open(key);
      const controller = new AbortController();
      const running = other.runTurn("Go", { signal: controller.signal });
      while (!hanging.events.some(({ name }) => name === "call.started")) await new Promise((go) => setImmediate(go));
      controller.abort();
      expect(await running).toMatchObject({ outcome: "aborted", text: expect.stringMatching(mark) });
    });
  },
);

describe("other parts that are too large", () => {
  it("characters of several bytes, escapes, thoughts and thousands of blocks fit too, and small parts stay whole", async () => {
    const contents: AssistantMessage["content"][] = [
      [{ type: "text", text: "ü€".repeat(little / 4) }],
      [{ type: "text", text: "\u0001\u2028".repeat(little / 4) }],
      "😀".repeat(little / 4),
      [
        { type: "text", text: "short and whole" },
        { type: "thinking", thinking: "t".repeat(little), thinkingSignature: "signed" },
        { type: "text", text: "y".repeat(little) },
      ],
      Array.from({ length: 8_000 }, (_, index) => ({ type: "text" as const, text: `piece ${index} of many` })),
      [
        { type: "server_tool_use", input: "z".repeat(little) },
        { type: "text", text: "behind it" },
      ],
    ];
    for (const content of contents) {
      const { sessions, records } = createFixture({
        store: narrow(),
        model: { ...model, chat: saying(content, "whole") },
      });
      await using session = await sessions.open(key);
      expect(await session.runTurn("Go")).toMatchObject({ outcome: "done" });
      const record = JSON.stringify((await records())[2]?.record);
      expect(record).toMatch(/left out/);
      expect(record.isWellFormed()).toBe(true);
      if (record.includes("short and")) expect(record).toContain('"short and whole"');
      expect(record).not.toContain("signed");
    }
  });

  it("a result is cut with a mark, details go, and arguments are not run but answered", async () => {
    const call = (id: string, args: Record<string, unknown>) => ({ id, name: "work", arguments: args });
    const script = createScriptedModel(
      { calls: [call("1", {}), call("2", { text: "a".repeat(little) }), call("3", {})] },
      "seen",
    );
    let runs = 0;
    const work: AgentTool = {
      definition: { name: "work", description: "", inputSchema: { type: "object" } },
      run: () => (runs++ === 0 ? "r".repeat(little) : { content: "small", details: { list: "d".repeat(little) } }),
    };
    const { sessions, records } = createFixture({ store: narrow(), model: { ...model, chat: script }, tools: [work] });
    await using session = await sessions.open(key);
    expect((await session.runTurn("Go")).text).toBe("seen");
    const results = (await records()).filter(
      ({ record }) => (record["message"] as { role?: string })?.role === "toolResult",
    );
    const texts = results.map(({ record }) => JSON.stringify(record));
    expect(texts.find((text) => text.includes('"toolCallId":"1"'))).toMatch(/\d+ of 400000 characters are left out/);
    expect(texts.find((text) => text.includes('"toolCallId":"2"'))).toContain("too large");
    expect(texts.find((text) => text.includes('"toolCallId":"3"'))).toMatch(/"small".*The details have \d+ bytes/);
    expect(runs).toBe(2);
  });

  it("a model that streams without end is stopped at a bound, and what it hands over is kept", async () => {
    let pieces = 0;
    const piece = "word ".repeat(1000);
    const endless: ChatModel = {
      provider: "anthropic",
      api: "anthropic",
      async chat({ onDelta, onPartial, signal }) {
        for (; signal?.aborted !== true; pieces++) {
          onDelta?.({ type: "text", text: piece });
          if (pieces % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
        }
        const content = [{ type: "text" as const, text: piece.repeat(10) }];
        onPartial?.({ role: "assistant", content, ...facts, stopReason: "aborted" });
        throw new Error("aborted");
      },
    };
    const { sessions, records } = createFixture({ store: narrow(), model: { ...model, chat: endless } });
    await using session = await sessions.open(key);
    let heard = 0;
    const onDelta = ({ type }: { readonly type: string }): void => void (type === "text" && (heard += piece.length));
    const error: unknown = await session.runTurn("Go", { onDelta }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "MODEL_FAILED", message: expect.stringContaining("did not end within") });
    expect(heard).toBeLessThanOrEqual(8 * 1024 * 1024);
    expect(outline(await records())).toEqual(["turn:open", "user", "assistant:error", "call:failed", "turn:failed"]);
  });
});
