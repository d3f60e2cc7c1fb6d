import { describe, expect, expectTypeOf, it } from "vitest";
import {
  assistantMessage,
  customRecord,
  type RecordDraft,
  sessionRef,
  toolResult,
  userMessage,
} from "@throughline/core";
import type { SessionDraft } from "../src/session-draft.ts";
import { createMemoryStore } from "@throughline/store-memory";

const ref = sessionRef({ key: "home" });

describe("drafts that a program writes", () => {
  it("are stored and read back as they were written", async () => {
    await using store = createMemoryStore();
    await store.save(ref, { sessionId: "1" }, { ifRevision: null });
    const call = { type: "toolCall", id: "call-1", name: "list_files", arguments: {} } as const;
    const drafts: readonly SessionDraft[] = [
      userMessage("What is here?"),
      assistantMessage([call], { model: "m", provider: "p", stopReason: "toolUse", responseId: "r-1" }),
      toolResult(call, "3 files", { details: { files: 3 } }),
      customRecord("acme.ticket", { id: 7 }),
      { type: "acme.note", text: "a record of a type of one's own" },
    ];
    await store.append(ref, drafts);
    const [page] = await Array.fromAsync(store.read(ref));
    const stored = page?.records.map(({ record: { id: _i, parentId: _p, timestamp: _t, ...rest } }) => rest);
    expect(stored).toEqual([
      { type: "message", message: { role: "user", content: "What is here?" } },
      {
        type: "message",
        message: {
          role: "assistant",
          content: [call],
          model: "m",
          provider: "p",
          stopReason: "toolUse",
          responseId: "r-1",
        },
      },
      {
        type: "message",
        message: {
          role: "toolResult",
          toolCallId: "call-1",
          toolName: "list_files",
          content: "3 files",
          isError: false,
          details: { files: 3 },
        },
      },
      { type: "custom", customType: "acme.ticket", data: { id: 7 } },
      { type: "acme.note", text: "a record of a type of one's own" },
    ]);
  });

  it("do not compile with a misspelt type or field", () => {
    // @ts-expect-error `mesage` is no known type, and a type of one's own holds a dot
    const misspeltType: SessionDraft = { type: "mesage", message: { role: "user", content: "x" } };
    // @ts-expect-error `contnt` is no field of a message
    const misspeltContent: SessionDraft = { type: "message", message: { role: "user", contnt: "x" } };
    // @ts-expect-error `tokenBefore` is no field of a compaction
    const misspeltField: SessionDraft = { type: "compaction", summary: "s", firstKeptEntryId: "a", tokenBefore: 1 };
    // @ts-expect-error a known role is wanted: another one is shown to no model
    const unknownRole: SessionDraft = { type: "message", message: { role: "asistant", content: "x" } };
    expect([misspeltType, misspeltContent, misspeltField, unknownRole]).toHaveLength(4);
    expectTypeOf<SessionDraft>().toExtend<RecordDraft>();
  });
});
