import { storedRecords, type RecordSketch } from "./stored-records.ts";
import type { StoredRecord } from "@throughline/core";

/** Numbers that are the same for the same seed. */
class Dice {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** Below `sides`. */
  roll(sides: number): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % sides;
  }

  one<Item>(items: readonly Item[]): Item {
    return items[this.roll(items.length)] as Item;
  }

  /** True once in so many times. */
  rarely(sides: number): boolean {
    return this.roll(sides) === 0;
  }
}

type Fields = Readonly<Record<string, unknown>>;

const png = "iVBORw0KGgo=";
const ids = ["toolu_01", "call_7|fc_7", "functions.read:0", "x", "call a", "ü", "c".repeat(90), "a|b", ""];
const writers: readonly Fields[] = [
  { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5" },
  { api: "anthropic-messages", provider: "anthropic", model: "claude-opus-5-5" },
  { api: "openai-responses", provider: "openai", model: "gpt-5" },
  { api: "openai-completions", provider: "openai", model: "gpt-4o" },
  { api: "google-generative-ai", provider: "google", model: "gemini-3-pro" },
  { api: "bedrock-converse-stream", provider: "amazon-bedrock", model: "anthropic.claude-sonnet-4-5" },
  { api: "mistral-conversations", provider: "mistral", model: "magistral-medium" },
  { api: "ollama", provider: "ollama", model: "qwen3" },
  {},
];
const reasoning = JSON.stringify({ type: "reasoning", id: "rs_1", summary: [], encrypted_content: "ZQ==" });

/** Logs as other programs leave them behind, and as nobody ever should; the same log for the same seed. */
export function foreignLog(seed: number): StoredRecord[] {
  return new ForeignWriter(new Dice(seed)).log();
}

class ForeignWriter {
  private readonly dice: Dice;
  private readonly sketches: RecordSketch[] = [];
  private writer: Fields;
  private words = 0;
  private replies = 0;

  constructor(dice: Dice) {
    this.dice = dice;
    this.writer = dice.one(writers);
  }

  log(): StoredRecord[] {
    for (let step = 1 + this.dice.roll(14); step > 0; step--) this.step();
    return storedRecords(this.sketches);
  }

  private step(): void {
    const { dice } = this;
    if (dice.rarely(9)) this.writer = dice.one(writers);
    switch (dice.roll(12)) {
      case 0:
      case 1:
        return this.message({ role: "user", content: this.userContent() });
      case 2:
        return this.odd();
      case 3:
        return this.record();
      case 4:
        return this.message({ role: "assistant", content: this.replyContent([]), ...this.ending() });
      default:
        return this.loop();
    }
  }

  /** Calls and what came back: together, apart, in part, twice, late or under another id. */
  private loop(): void {
    const { dice } = this;
    const calls = Array.from({ length: 1 + dice.roll(3) }, () => this.callId());
    const responseId = dice.rarely(2) ? `msg_${++this.replies}` : undefined;
    const ending = { ...this.ending(), ...(responseId === undefined ? {} : { responseId }) };
    const blocks = this.replyContent(calls);
    if (dice.rarely(3)) {
      // A record for each block, as Claude Code writes them.
      for (const block of blocks)
        this.message({ role: "assistant", content: [block], ...ending, ...(dice.rarely(2) ? { fragment: true } : {}) });
    } else this.message({ role: "assistant", content: blocks, ...ending });
    if (dice.rarely(6)) this.message({ role: "user", content: this.userContent() });
    const answered = calls.filter(() => !dice.rarely(6));
    if (dice.rarely(8)) answered.push(...calls.slice(0, 1));
    if (dice.rarely(4)) answered.reverse();
    if (dice.rarely(7)) answered.push(dice.one(ids));
    if (dice.rarely(4)) {
      // All in one user message, in the provider's own shape.
      const content = answered.map((id) => this.nativeResult(id));
      this.message({ role: "user", content: dice.rarely(3) ? [...content, this.text()] : content });
      return;
    }
    for (const toolCallId of answered) {
      const toolName = dice.one(["read", "read", "weird name!", "", undefined]);
      this.message({
        role: "toolResult",
        toolCallId,
        toolName,
        content: this.resultContent(),
        isError: dice.rarely(5),
      });
    }
  }

  private callId(): string {
    return this.dice.rarely(3) ? this.dice.one(ids) : `t${this.dice.roll(12)}`;
  }

  private replyContent(calls: readonly string[]): Fields[] {
    const { dice } = this;
    const blocks: Fields[] = [];
    if (dice.rarely(3)) blocks.push(this.thinking());
    if (dice.rarely(2)) blocks.push(this.text());
    if (dice.rarely(6)) blocks.push(...this.serverTool());
    if (dice.rarely(20)) blocks.push({ type: "compaction", content: "What was said before." });
    for (const id of calls) {
      const given = dice.one<Fields>([
        { path: "a.ts" },
        {},
        { text: "\ud800", deep: { list: [1, "\udc00"] } },
        { n: dice.roll(3) },
      ]);
      blocks.push(
        dice.one<Fields>([
          { type: "toolCall", id, name: dice.one(["read", "weird name!"]), arguments: given },
          { type: "toolCall", id, name: "read", arguments: given, thoughtSignature: dice.one(["c2ln", "no base"]) },
          { type: "tool_use", id, name: "read", input: given },
        ]),
      );
      if (dice.rarely(10)) blocks.push(this.text());
    }
    if (dice.rarely(10)) blocks.push(this.thinking());
    if (dice.rarely(12)) blocks.push({ type: dice.one(["citation_block", "", "image"]), value: 1 });
    return blocks;
  }

  private thinking(): Fields {
    return this.dice.one<Fields>([
      { type: "thinking", thinking: `thought ${++this.words}`, thinkingSignature: "c2lnbmF0dXJl" },
      { type: "thinking", thinking: "", thinkingSignature: "c2ln", redacted: true },
      { type: "thinking", thinking: "unsigned" },
      { type: "thinking", thinking: "", thinkingSignature: reasoning },
      { type: "thinking", thinking: "native", signature: "c2ln" },
      { type: "redacted_thinking", data: "b3BhcXVl" },
    ]);
  }

  private serverTool(): Fields[] {
    const id = `srvtoolu_${this.dice.roll(3)}`;
    const call = { type: "server_tool_use", id, name: "web_search", input: { query: "x" } };
    const result = { type: "web_search_tool_result", tool_use_id: id, content: [] };
    return this.dice.one([[call, result], [call], [result], [result, call]]);
  }

  private text(): Fields {
    const said = `words ${++this.words}.`;
    return this.dice.one<Fields>([
      { type: "text", text: said },
      { type: "text", text: said },
      { type: "text", text: `${said}  \n` },
      { type: "text", text: `${said} \ud83d` },
      { type: "text", text: said, textSignature: "sig" },
      { type: "text", text: " \n" },
      { type: "text", text: "" },
    ]);
  }

  private image(): Fields {
    return this.dice.one<Fields>([
      { type: "image", data: png, mimeType: "image/png" },
      { type: "image", data: png, mimeType: "image/tiff" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
      { type: "image", source: { type: "url", url: "https://example.org/a.png" } },
      { type: "image", data: "not base64!", mimeType: "image/png" },
    ]);
  }

  private userContent(): unknown {
    const { dice } = this;
    return dice.one<() => unknown>([
      () => `asked ${++this.words}.`,
      () => [this.text()],
      () => [this.text(), this.image()],
      () => [],
      () => "",
      () => [
        { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" }, title: "a" },
      ],
      () => [this.text(), { type: "file", data: "YQ==", mimeType: "application/zip" }],
    ])();
  }

  private resultContent(): unknown {
    const { dice } = this;
    return dice.one<() => unknown>([
      () => `found ${++this.words}.`,
      () => [{ type: "text", text: `found ${++this.words}.` }],
      () => [this.image()],
      () => [this.text(), this.image(), this.image()],
      () => [],
      () => [{ type: "tool_reference", tool_name: "read" }],
      () => [{ type: "document", source: { type: "text", media_type: "text/plain", data: "plain" } }],
    ])();
  }

  private nativeResult(id: string): Fields {
    return { type: "tool_result", tool_use_id: id, content: this.resultContent(), is_error: this.dice.rarely(4) };
  }

  private ending(): Fields {
    const stopReason = this.dice.one(["stop", "toolUse", "toolUse", "length", "aborted", "error", undefined]);
    return { ...this.writer, ...(stopReason === undefined ? {} : { stopReason }) };
  }

  private message(message: Fields): void {
    const { dice } = this;
    // A branch now and then, and a record whose parent is nowhere.
    const at = dice.roll(this.sketches.length + 1);
    const parent = dice.rarely(25) ? { parentId: dice.one([`r${at}`, null, "gone"]) } : {};
    this.sketches.push({ type: "message", message, ...parent });
  }

  private odd(): void {
    const { dice } = this;
    const content = this.userContent();
    this.message(
      dice.one<Fields>([
        { role: "system", content },
        { role: "developer", content: "Be brief." },
        { role: "narrator", content },
        { role: "custom", customType: "note", content },
        { role: "bashExecution", command: "ls", output: "a.ts", exitCode: 0 },
        { role: "toolResult", toolCallId: this.callId(), content },
        { role: "user", content, excludeFromContext: true },
        { role: "assistant", content: "a reply as a string", ...this.writer },
      ]),
    );
  }

  private record(): void {
    const { dice } = this;
    const kept = `r${1 + dice.roll(this.sketches.length + 2)}`;
    const signed = { api: "anthropic-messages", block: { type: "compaction", content: "Summed up." } };
    this.sketches.push(
      dice.one<RecordSketch>([
        { type: "compaction", summary: "Summed up.", firstKeptEntryId: kept, tokensBefore: 9 },
        { type: "compaction", summary: "Summed up.", firstKeptEntryId: kept, tokensBefore: 9, details: { signed } },
        { type: "branch_summary", fromId: kept, summary: "Another branch." },
        { type: "context_edit", targetId: kept, replacement: dice.one([null, { content: "Otherwise." }]) },
        { type: "model_change", provider: "anthropic", modelId: "claude-opus-4-5" },
        { type: "thinking_level_change", thinkingLevel: "high" },
        { type: "reset" },
        { type: "custom_message", customType: "hint", content: this.userContent(), display: true },
        { type: "label", targetId: kept, label: "here" },
        { type: "something_else", value: 1 },
        { type: "message", message: null },
        { type: "message", message: { role: "assistant", content: [null, 7, "text"] } },
      ]),
    );
  }
}
