import { isSideRecord, type SourcedRecord, throughlineDraft } from "@throughline/core/internal";
import { foreignFormats } from "@throughline/foreign-formats";
import { describe, expect, it } from "vitest";
import { langchainMessages, openAiAgentsItems } from "../src/internal.ts";
import type { FormatLoss } from "../src/format-writer.ts";

const call = (id: string): object => ({ type: "toolCall", id, name: "pay", arguments: { order: `order of ${id}` } });
const message = (fields: object): object => ({ type: "message", message: fields });
const approval = (callId: string, decision: string): object =>
  throughlineDraft("approval", { turnId: "turn1", callId, tool: "pay", decision });

/** A session of which one call ran, and one waits for a person. */
const drafts: readonly object[] = [
  message({ role: "user", content: "Pay both." }),
  throughlineDraft("turn", { turnId: "turn1", state: "open" }),
  message({
    role: "assistant",
    content: [{ type: "text", text: "I pay." }, call("call-1"), call("call-2")],
    api: "anthropic-messages",
    provider: "anthropic",
    model: "claude-sonnet-4-5",
    stopReason: "toolUse",
  }),
  message({
    role: "toolResult",
    toolCallId: "call-1",
    toolName: "pay",
    content: [
      { type: "text", text: "paid the first" },
      { type: "image", data: "aWs=", mimeType: "image/png" },
    ],
    isError: false,
  }),
  approval("call-2", "wait"),
  throughlineDraft("turn", { turnId: "turn1", state: "waiting" }),
];

function waitingSession(): { readonly records: SourcedRecord[]; readonly headId: string | null } {
  let headId: string | null = null;
  const records = drafts.map((draft, at): SourcedRecord => {
    const tsMs = (at + 1) * 1000;
    const frame = { id: `r${at + 1}`, parentId: headId, timestamp: new Date(tsMs).toISOString() };
    const record = { ...(draft as { readonly type: string }), ...frame };
    const side = isSideRecord(record);
    if (!side) headId = record.id;
    const text = JSON.stringify(record);
    const stored = { seq: at + 1, side, tsMs, storedAtMs: tsMs, bytes: text.length, crc: null };
    return { ...frame, ...stored, type: record.type, record, source: text, isSourceCanonical: true };
  });
  return { records, headId };
}

const place = { sessionId: "s1", cwd: "/home/u", label: null, title: null, createdAtMs: 1000 };
const writers = [...foreignFormats.values()].flatMap(({ name, writer }) =>
  writer === undefined || writer === null ? [] : [[name, writer] as const],
);

describe.each(writers)("a session with a waiting call, written for %s", (_name, writer) => {
  it("has the call and no result for it", () => {
    const losses: FormatLoss[] = [];
    const pieces = [...writer.write({ ...place, ...waitingSession() }, { onLoss: (loss) => losses.push(loss) })];
    const written = pieces.join("\n");
    expect(written).toContain("order of call-2");
    expect(written).toContain("paid the first");
    expect(written).not.toContain("may or may not have run");
    expect(losses.filter(({ what }) => what === "made")).toEqual([]);
    expect(losses.map(({ kind }) => kind)).not.toContain("reply whose calls wait");
  });
});

describe.each([openAiAgentsItems, langchainMessages])("a session with a waiting call, as $name items", (format) => {
  const items = (repaired: boolean): string =>
    JSON.stringify(format.items({ ...waitingSession(), sessionId: "s1" }, { repaired }).map(({ value }) => value));

  it("has the call and no result for it", () => {
    expect(items(false)).toContain("order of call-2");
    expect(items(false)).toContain("paid the first");
    expect(items(false)).not.toContain("may or may not have run");
  });

  it("is sent to a model without the reply", () => {
    expect(items(true)).toContain("Pay both.");
    expect(items(true)).not.toContain("order of");
    expect(items(true)).not.toContain("may or may not have run");
  });
});
