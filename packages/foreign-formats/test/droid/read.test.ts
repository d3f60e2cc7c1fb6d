import { detectForeignFormat } from "@throughline/foreign-formats";
import { describe, expect, it } from "vitest";
import { jsonLines, readUnits, refusals, talk, type ReadSession } from "../read-units.ts";
import { droid, droidId, droidMessage, droidStart } from "./sample.ts";

type Fields = Readonly<Record<string, unknown>>;

function read(...lines: readonly (Fields | string)[]): ReadSession {
  const session = readUnits("droid", jsonLines(...lines), `/h/.factory/sessions/-w/${droidId}.jsonl`);
  expect(refusals(session)).toEqual([]);
  return session;
}

describe("a session of Droid", () => {
  it("has what a model got, in the order of the file", () => {
    const session = read(...droid);
    expect(talk(session).map((said) => said.replace(/^custom:/, "context:"))).toEqual([
      "context: <system-reminder>",
      "user: Where is the bug?",
      "assistant: (thinking) I look. ?c1",
      "=c1 toolResult: line 1",
      "assistant: In line 1.",
    ]);
    expect(session.context.messages.at(-1)).toMatchObject({ model: "claude-sonnet-4-5" });
    expect(session.context.messages[3]).toMatchObject({ toolName: "Read", isError: false });
    expect(session.findings).toEqual([]);
  });

  it("keeps the ids of the messages, and all their fields", () => {
    const { records } = read(...droid);
    expect(records.map(({ record }) => record.id)).toEqual(expect.arrayContaining(["m1", "m5", "m7", "t1"]));
    const reply = records.find(({ record }) => record.id === "m7")?.record;
    expect(reply?.["native"]).toEqual({ type: "message", parentId: "m6", message: { modelId: "claude-sonnet-4-5" } });
  });

  it("states its id, title, folder, and the session that started it", () => {
    const { reader } = read(...droid);
    expect([reader.sessionId, reader.spawnedBy, reader.entry]).toEqual([
      droidId,
      null,
      { cwd: "/w", title: "Find the bug", titleBy: "import" },
    ]);
    const child = read({ ...droidStart, sessionTitle: " ", callingSessionId: "parent" }).reader;
    expect([child.spawnedBy, child.entry["title"]]).toEqual(["parent", "where is the bug?"]);
  });

  it("reports a compaction once, because it is not known what the summary stands for", () => {
    const compaction = { type: "compaction_state", id: "k1", summaryText: "Short.", anchorMessage: { id: "m2" } };
    const session = read(...droid, compaction, { ...compaction, id: "k2" });
    expect(session.findings.map(({ code, recordId }) => [code, recordId])).toEqual([["SOURCE_UNREAD", "k1"]]);
    expect(talk(session)).toHaveLength(5);
  });

  it("is recognized by its first line; the others could be of pi", () => {
    const detected = (...lines: readonly Fields[]): string | undefined =>
      detectForeignFormat({ path: "/tmp/copy", head: Buffer.from(jsonLines(...lines)), isWhole: true })?.name;
    expect(detected(droidStart)).toBe("droid");
    expect(detected(...droid.slice(1))).not.toBe("droid");
    expect(detected({ type: "session_start" })).toBeUndefined();
  });

  it("reports a message that cannot be read, and goes on behind it", () => {
    const session = read(droidStart, droidMessage(1, "user", 7), '{"type":', droidMessage(2, "user", "Hi"));
    expect(talk(session)).toEqual(["user: Hi"]);
    expect(session.findings.map(({ recordId }) => recordId)).toContain("m1");
  });
});
