import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import type { StoredRecord } from "@throughline/core";
import { throughlineDraft } from "@throughline/core/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { mainRef, storeWithSession, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

interface PiSession {
  appendMessage(message: unknown): string;
  buildSessionContext(): { readonly messages: readonly { readonly role: string }[] };
  getBranch(): readonly { readonly id: string }[];
  getLeafId(): string | null;
  branch(id: string): void;
  appendSessionInfo(name: string): string;
  appendLabelChange(targetId: string, label: string): string;
}
interface PiModule {
  readonly SessionManager: { open(path: string): PiSession };
}

/** pi's session manager alone: the package's front door loads its whole terminal interface. */
async function loadPi(): Promise<PiModule | string> {
  try {
    const path = join(
      import.meta.dirname,
      "../node_modules/@mariozechner/pi-coding-agent/dist/core/session-manager.js",
    );
    return (await import(pathToFileURL(path).href)) as PiModule;
  } catch (error) {
    return `pi cannot be loaded here: ${error instanceof Error ? error.message : String(error)}`;
  }
}

const pi = await loadPi();
const assistant = {
  role: "assistant",
  content: [{ type: "text", text: "yes" }],
  api: "a",
  provider: "p",
  model: "m",
  stopReason: "stop",
  timestamp: 1,
  usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: {} },
};

async function recordsOf(root: string): Promise<readonly StoredRecord[]> {
  const store = createJsonlStore({ root });
  const records: StoredRecord[] = [];
  for await (const page of store.read(mainRef)) records.push(...page.records);
  await store.close();
  return records;
}

describe.skipIf(typeof pi === "string")(typeof pi === "string" ? pi : "pi 0.73.1", () => {
  const { SessionManager } = pi as PiModule;

  it("reads what we wrote and we go on after what it appends", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    await store.append(mainRef, [userDraft("one"), { type: "message", message: assistant }], { entry: { label: "x" } });
    const session = SessionManager.open(transcriptOf(root));
    expect(session.buildSessionContext().messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect(session.getBranch().map(({ id }) => id)).toEqual((await recordsOf(root)).map(({ id }) => id));

    const theirs = session.appendMessage({ role: "user", content: "two", timestamp: 2 });
    const { records, head } = await store.append(mainRef, [{ type: "message", message: assistant }]);
    expect(records[0]).toMatchObject({ seq: 4, parentId: theirs });
    expect(head.lastSeq).toBe(4);
    await store.close();

    const all = await recordsOf(root);
    expect(all.map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
    expect(all.every(({ parentId }, index) => parentId === (all[index - 1]?.id ?? null))).toBe(true);
    const again = SessionManager.open(transcriptOf(root));
    expect(again.buildSessionContext().messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "user",
      "assistant",
    ]);
    expect(again.getBranch().map(({ id }) => id)).toEqual(all.map(({ id }) => id));
  });

  it("finds the same context when the file ends in side records", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    const { records } = await store.append(mainRef, [userDraft("one"), { type: "message", message: assistant }]);
    await store.append(mainRef, [
      throughlineDraft("note", { kind: "test" }),
      { type: "label", targetId: records[0]?.id ?? "", label: "start" },
    ]);
    const session = SessionManager.open(transcriptOf(root));
    expect(session.buildSessionContext().messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    session.appendMessage({ role: "user", content: "two", timestamp: 2 });
    const next = await store.append(mainRef, [{ type: "message", message: assistant }]);
    await store.close();
    expect(next.records[0]?.seq).toBe(6);
    const again = SessionManager.open(transcriptOf(root));
    expect(again.buildSessionContext().messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "user",
      "assistant",
    ]);
  });

  it("may write all lines once more, as it does where no answer is: each has an id of its own, and those are found", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    const { records } = await store.append(mainRef, [userDraft("unanswered")]);
    const first = records[0]?.id ?? "";
    const session = SessionManager.open(transcriptOf(root));
    session.appendMessage({ role: "user", content: "two", timestamp: 2 });
    session.appendMessage(assistant);
    const fresh = createJsonlStore({ root });
    for (const each of [store, fresh]) {
      const all: StoredRecord[] = [];
      for await (const page of each.read(mainRef)) all.push(...page.records);
      const messages = all.filter(({ type }) => type === "message");
      expect(messages.map(({ id }) => id).slice(0, 2)).toEqual([first, `${first}~2`]);
      expect(messages[1]?.record).toEqual({ ...messages[0]?.record, id: `${first}~2` });
      expect(messages.slice(2).map(({ parentId }) => parentId)).toEqual([`${first}~2`, messages[2]?.id]);
    }
    expect((await store.redact(mainRef, [first], { reason: "test" })).seqs).toEqual([1]);
    await fresh.close();
    await store.close();
  });

  it("is followed to another branch where it leaves nothing there but a name or a label", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    const { records } = await store.append(mainRef, [userDraft("one"), { type: "message", message: assistant }]);
    await store.append(mainRef, [userDraft("two"), { type: "message", message: assistant }]);
    const [one, answer] = records.map(({ id }) => id);
    const session = SessionManager.open(transcriptOf(root));
    session.branch(answer ?? "");
    session.appendSessionInfo("named");
    session.appendLabelChange(one ?? "", "start");
    expect((await store.load(mainRef))?.head.headId).toBe(answer);
    const { records: next } = await store.append(mainRef, [userDraft("three")]);
    expect(next[0]?.parentId).toBe(answer);
    await store.close();
    const again = SessionManager.open(transcriptOf(root));
    expect(again.buildSessionContext().messages.length).toBe(3);
    const fresh = createJsonlStore({ root });
    expect((await fresh.load(mainRef))?.head.headId).toBe(next[0]?.id);
    await fresh.close();
  });

  it("knows an imported file by its own header, and finds its context", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    const header = {
      type: "session",
      version: 3,
      id: "their-own-id",
      timestamp: "2026-01-02T03:04:05.006Z",
      cwd: "/work",
    };
    const source = JSON.stringify(header);
    const { type: _type, id, timestamp, ...rest } = header;
    const record = { type: "session", id: `header:${id}`, parentId: null, timestamp, sessionId: id, ...rest };
    const message =
      '{"type":"message","id":"aaaa0001","parentId":null,"timestamp":"2026-01-02T03:04:06.006Z","message":{"role":"user","content":"hi","n":1.0}}';
    await store.append(mainRef, [{ source, record }, { source: message }]);
    await store.close();
    const [first = ""] = readFileSync(transcriptOf(root), "utf8").split("\n");
    expect(JSON.parse(first)).toMatchObject({ type: "session", id: "their-own-id" });
    expect((await recordsOf(root)).map(({ id: each }) => each)).toEqual(["header:their-own-id", "aaaa0001"]);
    expect(
      SessionManager.open(transcriptOf(root))
        .buildSessionContext()
        .messages.map(({ role }) => role),
    ).toEqual(["user"]);
  });
});
