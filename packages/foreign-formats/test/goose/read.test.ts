import { describe, expect, it } from "vitest";
import { jsonLines, readUnits, refusals, talk } from "../read-units.ts";

type Fields = Readonly<Record<string, unknown>>;

const text = (words: string): Fields => ({ type: "text", text: words });
const message = (role: string, content: readonly unknown[], fields: Fields = {}): Fields => ({
  role,
  created: 1_790_000_000,
  content,
  ...fields,
});
const request = (id: string, toolCall: unknown): Fields => ({ type: "toolRequest", id, toolCall });
const response = (id: string, toolResult: unknown): Fields => ({ type: "toolResponse", id, toolResult });

const header = { working_dir: "/home/u", description: "A file", message_count: 9, total_tokens: 5 };
const messages = [
  message("user", [text("Read both."), { type: "image", data: "aGk=", mimeType: "image/png" }]),
  message("assistant", [
    { type: "thinking", thinking: "Hm.", signature: "c2ln" },
    text("I look."),
    request("c1", { status: "success", value: { name: "developer__shell", arguments: { command: "cat a" } } }),
    request("c2", { status: "success", value: { name: "developer__shell" } }),
    request("c3", { status: "error", error: "not JSON" }),
    { type: "systemNotification", msg: "Thinking…" },
  ]),
  message("user", [
    response("c1", { status: "success", value: { content: [text("hello")], isError: false } }),
    response("c2", { status: "success", value: [text("old form")] }),
    response("c3", { status: "error", error: "No such tool." }),
  ]),
  message("assistant", [text("Done.")]),
];

describe("a session of Goose", () => {
  it("is read by its messages, also from a file of lines", () => {
    const session = readUnits("goose", jsonLines(header, ...messages));
    expect(talk(session)).toEqual([
      "user: Read both. [image]",
      "assistant: (thinking) I look. ?c1 ?c2",
      "=c1 toolResult: hello",
      "=c2 toolResult: old form",
      // Its call could not be read, and no provider is sent a result without one.
      "=c3 toolResult: No such tool.",
      "assistant: Done.",
    ]);
    expect(session.reader.entry).toEqual({ cwd: "/home/u", title: "A file", titleBy: "import" });
    expect(session.records[1]?.tsMs).toBe(1_790_000_000_000);
    expect([session.findings, refusals(session)]).toEqual([[], []]);
  });

  it("leaves out what the model does not see any more", () => {
    const hidden = { metadata: { userVisible: true, agentVisible: false } };
    const session = readUnits(
      "goose",
      jsonLines(
        header,
        message("user", [text("Long ago")], hidden),
        message("assistant", [text("Yes")], hidden),
        message("user", [text("In short.")], { metadata: { userVisible: false, agentVisible: true } }),
        message("assistant", [text("Go on.")], { metadata: null }),
      ),
    );
    expect(talk(session)).toEqual(["user: In short.", "assistant: Go on."]);
    expect(session.records.filter(({ type }) => type === "message")).toHaveLength(4);
  });

  it("keeps what nobody knows", () => {
    const session = readUnits(
      "goose",
      jsonLines(
        header,
        message("system", [text("x")]),
        message("user", "text" as never),
        message("user", [{ type: "novelty" }, 5]),
        ...messages.slice(3),
      ),
    );
    expect(talk(session)).toEqual(["assistant: Done."]);
    expect(session.findings.map(({ code, line }) => [code, line])).toEqual([
      ["RECORD_INVALID", 2],
      ["RECORD_INVALID", 3],
    ]);
  });
});

describe("thinking that Goose stored as it was streamed", () => {
  it("is one block up to its signature", () => {
    const piece = (thinking: string, signature?: string): object => ({
      type: "thinking",
      thinking,
      ...(signature === undefined ? {} : { signature }),
    });
    const pieces = [...Array.from({ length: 1260 }, (_, at) => piece(`${at} `)), piece("end", "c2ln"), piece("More.")];
    const session = readUnits(
      "goose",
      jsonLines(
        { role: "user", created: 1, content: [{ type: "text", text: "Hi" }] },
        { role: "assistant", created: 1, content: [...pieces, { type: "text", text: "So." }] },
      ),
    );
    const content = session.context.messages[1]?.content ?? [];
    expect(content.map(({ type }) => type)).toEqual(["thinking", "thinking", "text"]);
    expect(content[0]).toMatchObject({ signature: "c2ln" });
    expect((content[0] as { readonly thinking: string }).thinking.endsWith("1259 end")).toBe(true);
  });
});
