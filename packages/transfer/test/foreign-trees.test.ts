import { mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { SessionStore } from "@throughline/core";
import { buildContext } from "@throughline/history";
import { createMemoryStore } from "@throughline/store-memory";
import type { ImportSource } from "../src/import-types.ts";
import { describe, expect, it } from "vitest";
import { exported, fixtureFolder, importAll, recordsOf, refOf, type FixtureFolder } from "./fixture-folder.ts";

type Fields = Readonly<Record<string, unknown>>;

const created = 1_778_178_631_267;
const [root, id] = ["opencode/storage", "ses_469cf929cffeBICghRNeI7BWy6"];
const sessionFile = `${root}/session/global/${id}.json`;

/** The program writes its files on several lines. */
function write(folder: FixtureFolder, name: string, value: unknown): string {
  return folder.write(`${root}/${name}.json`, JSON.stringify(value, null, 2));
}

function writeSession(folder: FixtureFolder, fields: Fields = {}): void {
  const info = { id, version: "0.15.0", projectID: "global", directory: "/home/u/app", title: "A file" };
  write(folder, `session/global/${id}`, { ...info, time: { created, updated: created }, ...fields });
}

function writeMessage(folder: FixtureFolder, message: string, info: Fields, ...parts: readonly Fields[]): void {
  write(folder, `message/${id}/${message}`, {
    id: message,
    sessionID: id,
    time: { created, completed: created },
    ...info,
  });
  for (const [at, part] of parts.entries()) {
    const partId = `prt_${message.slice(4)}${at}`;
    write(folder, `part/${message}/${partId}`, { id: partId, messageID: message, sessionID: id, ...part });
  }
}

const text = (words: string): Fields => ({ type: "text", text: words });
const reply: Fields = { role: "assistant", modelID: "m1", providerID: "anthropic", tokens: { input: 5, output: 2 } };
const read: Fields = {
  type: "tool",
  tool: "read",
  callID: "c1",
  state: { status: "completed", input: {}, output: "hello" },
};

function writeConversation(folder: FixtureFolder): void {
  writeSession(folder);
  writeMessage(folder, "msg_1", { role: "user" }, text("What is in a.txt?"));
  writeMessage(folder, "msg_2", reply, { type: "step-start" }, read, text("It says hello."));
  writeMessage(folder, "msg_3", { role: "user" }, text("Thanks"));
}

async function said(store: SessionStore, source: ImportSource): Promise<readonly string[]> {
  const state = await store.load(refOf(source));
  const { messages } = buildContext(await recordsOf(store, refOf(source)), { headId: state?.head.headId ?? null });
  return messages.map(({ role, content }) => {
    const words = content.map((block) =>
      block.type === "toolCall" ? `?${block.id}` : "text" in block ? block.text : "",
    );
    return `${role}: ${words.join(" ")}`;
  });
}

const conversation = ["user: What is in a.txt?", "assistant: ?c1 It says hello.", "toolResult: hello", "user: Thanks"];

describe("the files of opencode before it had a database", () => {
  it.each(["opencode", root, `${root}/session`, sessionFile])("are one session, named by %s", async (name) => {
    using folder = fixtureFolder();
    writeConversation(folder);
    write(folder, "session_share/ses_1", { id: "x", secret: "sk-secret", url: "https://example.com" });
    folder.write("opencode/auth.json", '{"anthropic":{"key":"sk-secret"}}');
    const before = folder.state();
    await using store = createMemoryStore();
    const sources = await importAll(store, folder.at(name));
    expect(sources).toMatchObject([
      {
        format: "opencode",
        state: "imported",
        sessionId: id,
        lines: 3,
        records: 3,
        lost: [],
        repaired: 0,
        error: null,
      },
    ]);
    const [source] = sources as [ImportSource];
    expect(await said(store, source)).toEqual(conversation);
    const state = await store.load(refOf(source));
    expect(state?.entry).toMatchObject({ title: "A file", cwd: "/home/u/app" });
    expect(JSON.stringify([await recordsOf(store, refOf(source)), state])).not.toContain("sk-secret");
    expect((await importAll(store, folder.at(name))).map((one) => one.state)).toEqual(["unchanged"]);
    expect(folder.state()).toEqual(before);
  });

  it("grow by messages; a reply that is being written waits, and one that a crash left does not", async () => {
    using folder = fixtureFolder();
    writeConversation(folder);
    await using store = createMemoryStore();
    const path = folder.at(sessionFile);
    await importAll(store, path);
    writeMessage(folder, "msg_4", { ...reply, time: { created } }, text("You are"));
    const [held] = await importAll(store, path);
    expect(held).toMatchObject({ state: "unchanged", lines: 0, findings: [{ code: "SOURCE_UNREAD" }] });
    expect(held?.findings[0]?.message).toContain("The reply msg_4 has no end");
    writeMessage(folder, "msg_5", { role: "user" }, text("Still there?"));
    expect((await importAll(store, path))[0]).toMatchObject({ state: "unchanged", lines: 0 });
    writeMessage(folder, "msg_6", reply, text("Yes."));
    const [source] = (await importAll(store, path)) as [ImportSource];
    expect(source).toMatchObject({ state: "grown", records: 3, lost: [], error: null, findings: [] });
    expect((await said(store, source)).slice(-3)).toEqual([
      "assistant: You are",
      "user: Still there?",
      "assistant: Yes.",
    ]);
    writeMessage(folder, "msg_1", { role: "user" }, text("Something else"));
    expect((await importAll(store, path))[0]).toMatchObject({ state: "refused", error: { code: "SOURCE_CHANGED" } });
  });

  it("are the session that the program's database has after it took them over", async () => {
    using folder = fixtureFolder();
    writeConversation(folder);
    await using store = createMemoryStore();
    const [first] = (await importAll(store, folder.at("opencode"))) as [ImportSource];
    const database = new DatabaseSync(folder.at("opencode/opencode.db"));
    database.exec(`
      CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, title TEXT, revert TEXT);
      CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
      CREATE TABLE part (id TEXT, message_id TEXT, data TEXT);
      INSERT INTO session VALUES ('${id}', NULL, '/home/u/app', 'A file', NULL);`);
    const time = { created, completed: created };
    const addMessage = database.prepare("INSERT INTO message VALUES (?, ?, ?, ?)");
    const addPart = database.prepare("INSERT INTO part VALUES (?, ?, ?)");
    for (const [message, info, parts] of [
      ["msg_1", { role: "user" }, [text("What is in a.txt?")]],
      ["msg_2", reply, [{ type: "step-start" }, read, text("It says hello.")]],
      ["msg_3", { role: "user" }, [text("Thanks")]],
    ] as const) {
      addMessage.run(message, id, created, JSON.stringify({ time, ...info }));
      for (const [at, part] of parts.entries())
        addPart.run(`prt_${message.slice(4)}${at}`, message, JSON.stringify(part));
    }
    database.close();
    const sources = await importAll(store, folder.at("opencode"));
    expect(sources.map(({ state, key }) => [state, key])).toEqual([
      ["unchanged", first.key],
      ["unchanged", first.key],
    ]);
  });

  it("are written as a document that has the same conversation", async () => {
    using folder = fixtureFolder();
    writeConversation(folder);
    await using store = createMemoryStore();
    const [source] = (await importAll(store, folder.at(root))) as [ImportSource];
    const document = folder.write("export.json", await exported(store, refOf(source), "opencode"));
    await using other = createMemoryStore();
    const [again] = (await importAll(other, document)) as [ImportSource];
    expect(again).toMatchObject({ format: "opencode", state: "imported", lost: [], error: null });
    expect(await said(other, again)).toEqual(await said(store, source));
  });

  it("that are broken, too large, links or nobody's are reported and cost nothing else", async () => {
    using folder = fixtureFolder();
    writeConversation(folder);
    folder.write(`${root}/message/${id}/msg_0.json`, '{"id":"msg_0","role":"us');
    folder.write(`${root}/message/${id}/.oc-msg_9.json.1.tmp`, "{}");
    folder.write(`${root}/message/${id}/notes.json`, '{"secret":"sk-secret"}');
    mkdirSync(folder.at(`${root}/message/${id}/msg_7.json`));
    truncateSync(folder.write(`${root}/part/msg_3/prt_9.json`, "{"), 65 * 2 ** 20);
    symlinkSync(
      folder.write("elsewhere.json", '{"type":"text","text":"sk-secret"}'),
      folder.at(`${root}/part/msg_3/prt_8.json`),
    );
    await using store = createMemoryStore();
    const [source] = (await importAll(store, folder.at("opencode"))) as [ImportSource];
    expect(source).toMatchObject({ state: "imported", lines: 4, records: 4, lost: [], error: null });
    expect(source.findings.map(({ code, line }) => [code, line])).toEqual([
      ["RECORD_INVALID", 1],
      ["RECORD_INVALID", 4],
    ]);
    expect(await said(store, source)).toEqual(conversation);
    expect(JSON.stringify(await recordsOf(store, refOf(source)))).not.toContain("sk-secret");
    writeFileSync(folder.at(sessionFile), "");
    expect((await importAll(store, folder.at("opencode")))[0]).toMatchObject({
      state: "skipped",
      error: null,
    });
    rmSync(folder.at(`${root}/message`), { recursive: true });
    writeSession(folder);
    renameSync(folder.at(`${root}/session/global`), folder.at(`${root}/session/moved`));
    await using other = createMemoryStore();
    expect((await importAll(other, folder.at("opencode")))[0]).toMatchObject({
      state: "imported",
      lines: 0,
      error: null,
    });
  });
});
