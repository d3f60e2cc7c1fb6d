import { describe, expect, it } from "vitest";
import { assertDraftIsMeant } from "../src/prepare-drafts.ts";
import type { RecordDraft } from "../src/record-draft.ts";

function message(fields: Readonly<Record<string, unknown>>): RecordDraft {
  return { type: "message", message: fields };
}

describe("a draft that no context would show", () => {
  it.each([
    [message({ role: "user", contnt: "Hi" }), "message.content", "content", "contnt"],
    [message({ role: "user", Content: "Hi" }), "message.content", "content", "Content"],
    [message({ role: "assistant", content: 5 }), "message.content", "content", ""],
    [message({ role: "user", content: null }), "message.content", "content", ""],
    [message({ role: "user", content: [{ type: "text", txt: "Hi" }] }), "message.content.0.text", "text", "txt"],
    [message({ role: "toolResult", toolCalId: "1", content: "" }), "message.toolCallId", "toolCallId", "toolCalId"],
    [message({ rol: "user", content: "Hi" }), "message.role", "role", "rol"],
    [{ type: "message", mesage: { role: "user", content: "Hi" } }, "message", "message", "mesage"],
    [{ type: "mesage", message: { role: "user", content: "Hi" } }, "type", "message", "mesage"],
    [{ type: "Message", message: { role: "user", content: "Hi" } }, "type", "message", "Message"],
    [{ type: "compactoin", summary: "" }, "type", "compaction", "compactoin"],
  ] as const)("is refused: %j", (draft, path, nearest, instead) => {
    expect(() => assertDraftIsMeant(draft, 3)).toThrow(
      expect.objectContaining({ code: "INPUT_INVALID", outcome: "not-applied", details: { index: 3, path, nearest } }),
    );
    expect(() => assertDraftIsMeant(draft, 3)).toThrow(instead);
  });

  it.each<RecordDraft>([
    message({ role: "assistant", content: null }),
    message({ role: "assistant", content: [] }),
    message({ role: "assistant", content: [{ type: "toolCall", id: "1", name: "read", arguments: {} }] }),
    message({ role: "user", content: "" }),
    message({ role: "user", content: [{ type: "newer", what: 1 }] }),
    message({ role: "toolResult", toolCallId: "1", content: [] }),
    message({ role: "bashExecution", command: "ls", output: "" }),
    message({ role: "custom", content: "shown" }),
    message({ role: "observer" }),
    { type: "custom", customType: "throughline/turn" },
    { type: "messages" + "_of_others" },
    { type: "preset" },
    { type: "lead" },
    { type: "note", text: "kept" },
  ])("is taken when it is usable or a kind of its own: %j", (draft) => {
    expect(() => assertDraftIsMeant(draft, 0)).not.toThrow();
  });
});
