import type { StoredRecord } from "@throughline/core";
import { createProviderSimulator } from "@throughline/testing";
import type { ProviderSimulator } from "@throughline/testing";
import type { ReplyPart } from "@throughline/testing/internal";
import fc from "fast-check";
import { afterAll, beforeAll, describe, it } from "vitest";
import { renderAnthropic } from "@throughline/history/anthropic";
import { createHistory } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import { planRetry, planUndo } from "../src/plan-rewind.ts";
import type { History, HistoryTarget } from "@throughline/history";
import type { HistoryWindow } from "../src/growing-window.ts";
import { storedRecords, type RecordSketch } from "./stored-records.ts";
import { accepted } from "./third-reading.ts";
import { runs } from "./test-runs.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What may happen between two calls. */
const steps = [
  "say",
  "say",
  "tools",
  "tools",
  "unanswered",
  "late",
  "aborted",
  "steer",
  "compact",
  "edit",
  "leave-out",
  "shorter",
  "fewer",
  "other-model",
  "undo",
  "retry",
  "restart",
] as const;
type Step = (typeof steps)[number];

const anthropic = historyTargets.get("anthropic") as HistoryTarget;
let simulator: ProviderSimulator;
let nextReply: readonly ReplyPart[] = [];

beforeAll(async () => {
  simulator = createProviderSimulator({
    fallback: () => ({ kind: "answer", content: nextReply }),
    models: { "*": { windowTokens: 1e7 } },
  });
  await simulator.start();
});

afterAll(() => simulator.close());

/** A session that is played against a service which signs its thinking and knows what it was bound to. */
class LiveSession {
  private readonly records: StoredRecord[] = [];
  private history: History;
  private headId: string | null = null;
  private model: string;
  private count = 0;
  private window: HistoryWindow = {};

  constructor(model: string) {
    this.model = model;
    this.history = createHistory(anthropic, { target: this.target() });
  }

  private target(): { readonly provider: string; readonly modelId: string } {
    return { provider: "anthropic", modelId: this.model };
  }

  /** Another process or another model goes on with what was recorded of the last call. */
  private reopen(): void {
    const { cut, truncations } = this.history.context();
    this.history = createHistory(anthropic, {
      target: this.target(),
      limit: { ...this.window.limit, recorded: cut },
      truncate: { ...this.window.truncate, recorded: truncations, sentToSeq: this.records.length },
    });
    this.history.append(this.records);
    this.history.moveHead(this.headId);
  }

  private setWindow(window: HistoryWindow): void {
    this.window = { ...this.window, ...window };
    this.history.setWindow(window);
  }

  async play(step: Step): Promise<void> {
    const { records, headId } = this;
    const last = records.findLast(({ side }) => !side);
    const ids = records.flatMap(({ id, record }) => (this.role(record) === "toolResult" ? [id] : []));
    switch (step) {
      case "say":
        return this.ask([
          { type: "thinking", thinking: `Well ${this.count}.` },
          { type: "text", text: "Yes." },
        ]);
      case "tools":
      case "unanswered":
      case "late":
        return this.useTools(step);
      case "aborted":
        this.add({ role: "user", content: "Stop." });
        return this.add({
          role: "assistant",
          content: [this.thinking("half", "x")],
          stopReason: "aborted",
          ...this.by(),
        });
      case "steer":
        return this.add({ role: "user", content: `Also ${this.count}.` });
      case "compact": {
        const kept = records.filter(({ type, side }) => type === "message" && !side).at(-3);
        return kept === undefined
          ? undefined
          : this.addRecord({ type: "compaction", summary: "So far.", firstKeptEntryId: kept.id, tokensBefore: 1 });
      }
      case "edit":
      case "leave-out": {
        const replacement = step === "edit" ? { content: "Edited." } : null;
        const targetId = ids.at(-1) ?? last?.id;
        return targetId === undefined ? undefined : this.addRecord({ type: "context_edit", targetId, replacement });
      }
      case "shorter":
        return this.setWindow({ truncate: { maxChars: 40 - (this.count % 30) } });
      case "fewer":
        return this.setWindow({ limit: { maxMessages: 6 + (this.count % 5) } });
      case "other-model":
        this.model = this.model === "claude-opus-5-5" ? "claude-opus-4-5" : "claude-opus-5-5";
        this.addRecord({ type: "model_change", provider: "anthropic", modelId: this.model });
        return this.reopen();
      case "restart":
        return this.reopen();
      case "undo":
      case "retry": {
        const plan = step === "undo" ? planUndo(records, headId) : planRetry(records, headId);
        if (plan === null) return;
        this.headId = plan.options.rewindTo;
        return this.history.moveHead(this.headId);
      }
    }
  }

  private role(record: Fields): unknown {
    return (record["message"] as Fields | undefined)?.["role"];
  }

  private by(): Fields {
    return { provider: "anthropic", api: "anthropic-messages", model: this.model };
  }

  private thinking(thinking: string, thinkingSignature: string): Fields {
    return { type: "thinking", thinking, thinkingSignature };
  }

  private add(message: Fields): void {
    this.addRecord({ type: "message", message });
  }

  private addRecord(sketch: RecordSketch): void {
    const [record] = storedRecords([{ parentId: this.headId, ...sketch }], this.records.length + 1);
    if (record === undefined) return;
    this.records.push(record);
    this.history.append([record]);
    this.headId = record.id;
  }

  private async useTools(step: "tools" | "unanswered" | "late"): Promise<void> {
    const ids = [0, 1].map((index) => `toolu_${this.count}_${index}`);
    const calls = ids.map((id): ReplyPart => ({ type: "tool-call", name: "look", input: { at: id }, id }));
    await this.ask([{ type: "thinking", thinking: `Look ${this.count}.` }, ...calls]);
    for (const [index, toolCallId] of ids.entries()) {
      if (index === 1 && step === "unanswered") continue;
      if (index === 1 && step === "late")
        await this.ask([
          { type: "thinking", thinking: "Wait." },
          { type: "text", text: "On." },
        ]);
      this.add({
        role: "toolResult",
        toolCallId,
        toolName: "look",
        content: `found ${toolCallId} `.repeat(9),
        isError: false,
      });
    }
    await this.call([
      { type: "thinking", thinking: `Seen ${this.count}.` },
      { type: "redacted-thinking" },
      { type: "text", text: "Fine." },
    ]);
  }

  private async ask(content: readonly ReplyPart[]): Promise<void> {
    this.add({ role: "user", content: `Ask ${this.count}.` });
    await this.call(content);
  }

  /** One call: it must be accepted, whatever happened before. */
  private async call(content: readonly ReplyPart[]): Promise<void> {
    this.count++;
    nextReply = content;
    const { messages } = this.history.render();
    const { canThink } = renderAnthropic(this.history.context(), { target: this.target() });
    const budget = canThink ? { type: "enabled", budget_tokens: 1024 } : { type: "disabled" };
    const thinking = this.model === "claude-opus-5-5" ? { type: "adaptive" } : budget;
    const body = { model: this.model, max_tokens: 2000, thinking, messages };
    const reply = (await accepted(simulator, "/v1/messages", body))["content"] as readonly Fields[];
    this.history.markSent();
    this.add({
      role: "assistant",
      content: reply.map((block) => this.stored(block)),
      stopReason: "stop",
      ...this.by(),
    });
  }

  private stored(block: Fields): Fields {
    switch (block["type"]) {
      case "thinking":
        return this.thinking(String(block["thinking"]), String(block["signature"]));
      case "redacted_thinking":
        return { ...this.thinking("", String(block["data"])), redacted: true };
      case "tool_use":
        return { type: "toolCall", id: block["id"], name: block["name"], arguments: block["input"] };
      default:
        return block;
    }
  }
}

describe("a conversation with a service that signs and binds its thinking", () => {
  it.each(["claude-opus-5-5", "claude-opus-4-5"])(
    "goes on whatever is compacted, edited, shortened, switched, left unanswered or taken back: %s",
    async (model) => {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.constantFrom(...steps), { minLength: 2, maxLength: 14 }), async (plan) => {
          const session = new LiveSession(model);
          for (const step of [...plan, "say" as const]) await session.play(step);
        }),
        // The second limit leaves what the first did, and meets it with a later reply.
        { ...runs(30), examples: [[["say", "fewer", "say", "tools", "say", "unanswered", "fewer"]]] },
      );
    },
    120_000,
  );
});
