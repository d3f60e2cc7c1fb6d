import { describe, expect, expectTypeOf, it } from "vitest";
import { messagesOf, openSession, recordsOf, sessionRef, type AppendDraft } from "@throughline/core";
import { replaceMembers } from "@throughline/test-kit";
import { createMemoryStore } from "@throughline/store-memory";

const ref = sessionRef({ key: "agent:main:main" });

async function storeWith(drafts: readonly AppendDraft[]) {
  const store = createMemoryStore();
  await openSession(store, ref);
  await store.append(ref, drafts);
  return store;
}

const user = (content: unknown, fields: object = {}): AppendDraft =>
  ({ type: "message", message: { role: "user", content, ...fields } }) as AppendDraft;

describe("messagesOf", () => {
  it("has a stored file as a block with known fields, where a person or a tool sent it", async () => {
    const fileId = "a".repeat(64);
    const file = { type: "file", fileId, name: "report.pdf", mediaType: 7, of: "another version" };
    const store = await storeWith([
      user([file, { type: "file", data: "AAAA" }]),
      { type: "message", message: { role: "toolResult", toolCallId: "c", content: [file] } } as AppendDraft,
      { type: "message", message: { role: "assistant", content: [file] } } as AppendDraft,
    ]);
    const messages = await Array.fromAsync(messagesOf(store, ref));
    const contents = messages.map((message) => ("content" in message ? message.content : []));
    const shown = { type: "file", fileId, name: "report.pdf" };
    expect(contents).toEqual([
      [shown, { type: "unknown", raw: { type: "file", data: "AAAA" } }],
      [shown],
      [{ type: "unknown", raw: file }],
    ]);
    for (const message of messages)
      if (message.role === "user")
        for (const block of message.content)
          if (block.type === "file") expectTypeOf(block.name).toEqualTypeOf<string | undefined>();
  });

  it("narrows on the role, and on the type of a block", async () => {
    const store = await storeWith([
      user("Hi"),
      {
        type: "message",
        message: {
          role: "assistant",
          model: "m",
          content: [
            { type: "text", text: "Hello" },
            { type: "toolCall", id: "c", name: "look", arguments: { at: 1 } },
            { type: "hologram", depth: 3 },
          ],
        },
      } as AppendDraft,
      { type: "message", message: { role: "toolResult", toolCallId: "c", content: "found" } } as AppendDraft,
    ]);
    const seen: string[] = [];
    for await (const message of messagesOf(store, ref)) {
      if (message.role === "user") {
        expectTypeOf(message.source).toEqualTypeOf<string | undefined>();
        // @ts-expect-error A message has the fields of its role only.
        expect(message.model).toBeUndefined();
      }
      if (message.role === "assistant") {
        expectTypeOf(message.model).toEqualTypeOf<string | undefined>();
        for (const block of message.content) {
          if (block.type === "text") {
            expectTypeOf(block.text).toBeString();
            seen.push(block.text);
          } else if (block.type === "toolCall") {
            expectTypeOf(block.name).toBeString();
            seen.push(block.name);
          } else if (block.type === "unknown") {
            seen.push(String(block.raw["type"]));
          } else {
            expectTypeOf(block.type).toEqualTypeOf<"thinking">();
          }
        }
      }
      if (message.role === "toolResult") seen.push(message.toolCallId);
    }
    expect(seen).toEqual(["Hello", "look", "hologram", "c"]);
  });

  it("gives text alone as one block, and states where the message stands", async () => {
    const store = await storeWith([user("Hi"), user("")]);
    const messages = await Array.fromAsync(messagesOf(store, ref));
    expect(messages).toMatchObject([
      { seq: 1, type: "message", role: "user", content: [{ type: "text", text: "Hi" }], side: false, parentId: null },
      { seq: 2, content: [], parentId: messages[0]?.recordId },
    ]);
  });

  it("gives an unknown role as it is stored", async () => {
    const message = { role: "oracle", words: ["maybe"] };
    const store = await storeWith([{ type: "message", message } as AppendDraft]);
    const [first] = await Array.fromAsync(messagesOf(store, ref));
    expect(first).toMatchObject({ type: "unknown", role: "unknown", raw: message });
    if (first?.type === "unknown") expectTypeOf(first.raw).toEqualTypeOf<Readonly<Record<string, unknown>>>();
  });

  it("leaves out the fields that no role has", async () => {
    const store = await storeWith([user("Hi", { mood: "good" })]);
    const messages = await Array.fromAsync(messagesOf(store, ref));
    expect(messages).toHaveLength(1);
    expect(messages[0]).not.toHaveProperty("mood");
  });
});

describe("recordsOf", () => {
  it("narrows on the type, and has no field that a type lacks", async () => {
    const store = await storeWith([
      user("Hi"),
      { type: "model_change", provider: "anthropic", modelId: "m" } as AppendDraft,
      { type: "star_chart", stars: 7 } as AppendDraft,
    ]);
    const seen: unknown[] = [];
    for await (const record of recordsOf(store, ref)) {
      switch (record.type) {
        case "model_change":
          expectTypeOf(record.modelId).toBeString();
          // @ts-expect-error The field belongs to another type.
          seen.push(record.modelId, record.stars);
          break;
        case "message":
          seen.push(record.message.role);
          break;
        case "unknown":
          seen.push(record.raw.type, record.raw["stars"]);
          break;
        case "compaction":
          expectTypeOf(record.tokensAfter).toEqualTypeOf<number | undefined>();
          break;
        default:
          // @ts-expect-error The union is closed, so a field of no type does not compile.
          seen.push(record.titel);
      }
    }
    expect(seen).toEqual(["user", "m", undefined, "star_chart", 7]);
  });

  it.each([
    { type: "usage", kind: "summary" },
    { type: "leaf", targetId: 7 },
    { type: "reset" },
    { type: "constructor" },
  ])("gives a record without the fields of its type as unknown: %j", async (draft) => {
    const store = createMemoryStore();
    await openSession(store, ref);
    const record = { id: "r1", parentId: null, timestamp: "2026-01-02T03:04:05.006Z", ...draft };
    const read = async function* () {
      yield { records: [{ seq: 1, id: "r1", parentId: null, type: draft.type, side: false, tsMs: 0, record }] };
    };
    const damaged = replaceMembers(store, { read: read as never });
    expect(await Array.fromAsync(recordsOf(damaged, ref))).toMatchObject([{ type: "unknown", raw: record }]);
  });

  it("reads from where it is told to", async () => {
    const store = await storeWith([user("one"), user("two"), user("three")]);
    const records = await Array.fromAsync(recordsOf(store, ref, { afterSeq: 1, limit: 1 }));
    expect(records.map(({ seq }) => seq)).toEqual([2]);
  });
});
