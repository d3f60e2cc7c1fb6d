import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import type { StoredRecord } from "@throughline/core";
import { throughlineDraft } from "@throughline/core";
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

  it("reads what we wrote and we go on after what it appends [STO-17]", async () => {
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
