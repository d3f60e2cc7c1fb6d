import { throughlineDraft } from "@throughline/core/internal";
import fc from "fast-check";
import type { StoredRecord } from "@throughline/core";
import { storedRecords, type RecordSketch } from "./stored-records.ts";

/** Few ids, so that calls and results meet by chance, early, late, twice and never; some of them no provider takes. */
const callId = fc.constantFrom("t1", "t2", "t3", "t|4", "", "x".repeat(70), "вызов 5", "functions.read:0", "__proto__");
const recordId = fc.nat({ max: 40 }).map((seq) => `r${seq}`);

/** Every text is its own, so that a lost one is found. */
function words(): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.noBias(fc.nat()).map((value) => `w${value};`) },
    { weight: 1, arbitrary: fc.constantFrom("", "  ", "\n", "a\ud800", "end \n", "[User]: no") },
  );
}

const textBlock = words().map((text) => ({ type: "text", text }));
const image = fc.constantFrom(
  { type: "image", data: "aWs=", mimeType: "image/png" },
  { type: "image", data: "aWs=", mimeType: "image/tiff" },
);
const toolCall = fc.record({
  type: fc.constant("toolCall"),
  id: callId,
  name: fc.constantFrom("read", "write file", ""),
  arguments: fc.constantFrom({}, { path: "a" }, { path: "\udc00" }),
  thoughtSignature: fc.constantFrom("c2ln", "c2ln", "?"),
});
const thinking = fc.record({
  type: fc.constant("thinking"),
  thinking: words(),
  thinkingSignature: fc.constantFrom(
    "sig",
    "",
    "c2ln",
    JSON.stringify({ type: "reasoning", id: "rs_1", summary: [], encrypted_content: "e" }),
    JSON.stringify({ type: "reasoning", id: "rs_2", summary: [] }),
  ),
  redacted: fc.boolean(),
});
const pdf = { type: "base64", media_type: "application/pdf", data: "aWs=" };
const odd = fc.constantFrom<Readonly<Record<string, unknown>>>(
  { type: "future", data: 1 },
  { type: "document" },
  { type: "document", source: pdf, title: "a.pdf" },
  { type: "file", data: "aWs=", mimeType: "application/pdf", name: "b?.pdf" },
  { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
  { type: "server_tool_use", id: "s1", name: "web_search", input: {} },
  { type: "web_search_tool_result", tool_use_id: "s1", content: [] },
  { type: "mcp_tool_use", id: "m1", name: "look", server_name: "s", input: {} },
  { type: "mcp_tool_result", tool_use_id: "m1", is_error: false, content: [] },
  { type: "tool_reference", tool_name: "read" },
  { type: "tool_result", tool_use_id: "t1", content: "in a block" },
  { type: "document", source: { type: "text", media_type: "text/plain", data: "" } },
  { type: "image", source: { type: "file", file_id: "f1" } },
  { type: "compaction", content: "", signature: "s" },
  { type: "compaction", content: "so far", signature: "s" },
  { type: "redacted_thinking", data: "c2ln" },
  { type: "output_text", text: "as another API writes it" },
);

const userContent = fc.oneof(words(), fc.array(fc.oneof(textBlock, textBlock, image, odd), { maxLength: 3 }));
const assistantContent = fc.oneof(
  words(),
  fc.array(fc.oneof(textBlock, toolCall, toolCall, thinking, odd), { maxLength: 4 }),
);

const assistantMessage = fc.record(
  {
    role: fc.constant("assistant"),
    content: assistantContent,
    api: fc.constantFrom("anthropic-messages", "openai-responses", "google-generative-ai", "bedrock-converse-stream"),
    provider: fc.constantFrom("anthropic", "anthropic", "google"),
    model: fc.constantFrom("one", "two", "gemini-3-pro"),
    stopReason: fc.constantFrom("stop", "toolUse", "length", "aborted", "aborted", "error", "pause_turn", "refusal"),
    responseId: fc.constantFrom("m1", "m2"),
    fragment: fc.boolean(),
  },
  { requiredKeys: ["role", "content"] },
);

const message = fc.oneof(
  fc.record({ role: fc.constant("user"), content: userContent }),
  fc.record({
    role: fc.constant("user"),
    source: fc.constantFrom("continue", "continue", "flush"),
    content: userContent,
  }),
  assistantMessage,
  assistantMessage,
  fc.record({ role: fc.constant("toolResult"), toolCallId: callId, content: userContent, isError: fc.boolean() }),
  fc.record({
    role: fc.constant("toolResult"),
    toolCallId: callId,
    toolName: fc.constantFrom("read", ""),
    content: userContent,
  }),
  fc.record({
    role: fc.constant("bashExecution"),
    command: words(),
    output: words(),
    excludeFromContext: fc.boolean(),
  }),
  fc.record({ role: fc.constantFrom("custom", "system", "developer", "future"), content: userContent }),
  fc.constantFrom({ role: "user" }, { role: "assistant", content: 7 }, null),
);

const row: fc.Arbitrary<RecordSketch> = fc.oneof(
  { weight: 12, arbitrary: message.map((value) => ({ type: "message", message: value })) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("compaction"),
      summary: words(),
      firstKeptEntryId: recordId,
      tokensBefore: fc.nat(),
      details: fc.constantFrom<unknown>(
        {},
        { signed: { api: "anthropic-messages", block: { type: "compaction", content: "own", signature: "s" } } },
        { signed: { api: "anthropic-messages", block: null } },
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record(
      { type: fc.constant("reset"), reason: fc.constant("new"), firstKeptEntryId: recordId },
      { requiredKeys: ["type", "reason"] },
    ),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("branch_summary"), fromId: recordId, summary: words() }) },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant("custom_message"), customType: fc.constant("x"), content: userContent }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("context_edit"),
      targetId: recordId,
      replacement: fc.oneof(
        fc.constant(null),
        userContent.map((content) => ({ content })),
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("label"), targetId: recordId }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<RecordSketch>(
      { type: "thinking_level_change", thinkingLevel: "low" },
      { type: "model_change", provider: "anthropic", modelId: "one" },
      { type: "model_change", provider: "google", modelId: "gemini-3-pro" },
      { type: "future" },
    ),
  },
  {
    weight: 1,
    arbitrary: fc
      .boolean()
      .map((side) => throughlineDraft("redaction", { originalType: "message", redactedAtMs: 20_000, side })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(callId, fc.constantFrom("wait", "once", "no"))
      .map(([asked, decision]) => throughlineDraft("approval", { turnId: "t", callId: asked, tool: "read", decision })),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom("open", "waiting", "done")
      .map((state) => throughlineDraft("turn", { turnId: "t", state })),
  },
  {
    weight: 1,
    arbitrary: recordId.map((summaryId) =>
      throughlineDraft("note", { kind: "summary-superseded", summaryId, summary: "better" }),
    ),
  },
);

/** Mostly in a line; now and then another branch, an orphan, a self-parent, a cycle, an id seen before. */
const placed: fc.Arbitrary<RecordSketch> = fc
  .tuple(
    row,
    fc.oneof(
      { weight: 10, arbitrary: fc.constant({}) },
      { weight: 1, arbitrary: recordId.map((parentId) => ({ parentId })) },
      { weight: 1, arbitrary: recordId.map((id) => ({ id })) },
      { weight: 1, arbitrary: fc.constant({ parentId: null }) },
    ),
  )
  .map(([sketch, place]) => ({ ...sketch, ...place }));

export const randomLog: fc.Arbitrary<StoredRecord[]> = fc
  .array(placed, { maxLength: 40 })
  .map((sketches) => storedRecords(sketches));

/** A log in which nothing is wrong: each call is answered at once, in any order. */
export const validLog: fc.Arbitrary<StoredRecord[]> = fc
  .array(
    fc.record({
      ask: fc.nat(),
      steps: fc.array(fc.array(fc.nat({ max: 9 }), { minLength: 1, maxLength: 3 }), { maxLength: 3 }),
      isReversed: fc.boolean(),
    }),
    { minLength: 1, maxLength: 6 },
  )
  .map((turns) => storedRecords(turns.flatMap((turn, place) => validTurn(turn, place))));

function validTurn(turn: { ask: number; steps: number[][]; isReversed: boolean }, place: number): RecordSketch[] {
  const said = (role: string, fields: Readonly<Record<string, unknown>>): RecordSketch => ({
    type: "message",
    message: { role, ...fields },
  });
  const reply = { provider: "anthropic", model: "one" };
  const steps = turn.steps.flatMap((paths, step) => {
    const calls = paths.map((path, index) => ({
      type: "toolCall",
      id: `c_${place}_${step}_${index}`,
      name: "read",
      arguments: { path },
    }));
    const results = calls.map((call) =>
      said("toolResult", {
        toolCallId: call.id,
        toolName: "read",
        content: [{ type: "text", text: "ok" }],
        isError: false,
      }),
    );
    return [
      said("assistant", { content: calls, stopReason: "toolUse", ...reply }),
      ...(turn.isReversed ? results.toReversed() : results),
    ];
  });
  return [
    said("user", { content: `ask ${turn.ask}` }),
    ...steps,
    said("assistant", { content: [{ type: "text", text: "done" }], stopReason: "stop", ...reply }),
  ];
}
