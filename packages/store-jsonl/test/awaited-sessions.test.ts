import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openSession, sessionRef, type SessionEvent, type SessionRef } from "@throughline/core";
import { systemRandom } from "@throughline/core/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const ref: SessionRef = sessionRef({ key: "agent:main:discord:group:5" });
const sessionId = "dddddddd-0000-4000-8000-000000000002";
const entry = { sessionId, updatedAt: 1_736_942_400_000, sendPolicy: "deny", label: "quiet group" };

/** A folder of another program with an entry and no transcript. */
function folderWithEntry(written: object = entry): { readonly root: string; readonly sessions: string } {
  const root = newFolder();
  const sessions = join(root, "agents/main/sessions");
  mkdirSync(sessions, { recursive: true });
  writeFileSync(join(sessions, "sessions.json"), JSON.stringify({ [ref.key]: written }));
  return { root, sessions };
}

describe("an entry of another program without a transcript", () => {
  it("is a session: listed, loaded, and nothing is reported or written for it", async () => {
    const { root, sessions } = folderWithEntry();
    const events: SessionEvent[] = [];
    await using store = createJsonlStore({ root, onEvent: (event) => events.push(event) });
    expect((await store.list()).sessions).toMatchObject([{ ref, entry, sessionId, head: { lastSeq: 0 } }]);
    expect(await store.load(ref)).toMatchObject({ entry: { sendPolicy: "deny", label: "quiet group" } });
    expect(await Array.fromAsync(store.read(ref))).toEqual([]);
    expect(await Array.fromAsync(store.maintenance?.verify({ full: true }) ?? [])).toEqual([]);
    expect(events.filter((event) => event.name === "finding" && event.finding.code !== "FOLDER_EXPOSED")).toEqual([]);
    expect(existsSync(join(sessions, `${sessionId}.jsonl`))).toBe(false);
  });

  it("keeps its id and fields in the first turn, here and in the index of the other program", async () => {
    const { root, sessions } = folderWithEntry();
    await using store = createJsonlStore({ root });
    const opened = await openSession(store, ref, { random: systemRandom });
    expect(opened).toMatchObject({ state: { sessionId, entry: { sendPolicy: "deny" } } });
    await store.append(ref, [userDraft("one")], { entry: { model: "m" } });
    await store.close();
    const [header, line] = readFileSync(join(sessions, `${sessionId}.jsonl`), "utf8").split("\n");
    expect([JSON.parse(header ?? ""), JSON.parse(line ?? "")]).toMatchObject([{ id: sessionId }, { type: "message" }]);
    const index = JSON.parse(readFileSync(join(sessions, "sessions.json"), "utf8")) as Record<string, unknown>;
    expect(index[ref.key]).toMatchObject({ sessionId, sendPolicy: "deny", label: "quiet group", model: "m" });
  });

  it("takes the records that the other program writes first", async () => {
    const { root, sessions } = folderWithEntry();
    await using store = createJsonlStore({ root });
    expect(await store.load(ref)).toMatchObject({ sessionId });
    const timestamp = "2026-01-02T03:04:05.006Z";
    const header = JSON.stringify({ type: "session", version: 3, id: sessionId, timestamp, cwd: "/" });
    const message = { type: "message", id: "m1", parentId: null, timestamp, message: { role: "user", content: "hi" } };
    writeFileSync(join(sessions, `${sessionId}.jsonl`), `${header}\n${JSON.stringify(message)}\n`);
    await store.append(ref, [userDraft("two")]);
    const pages = await Array.fromAsync(store.read(ref));
    expect(pages.flatMap(({ records }) => records.map(({ record }) => record["message"]))).toMatchObject([
      undefined,
      { content: "hi" },
      { content: "two" },
    ]);
    expect(await store.load(ref)).toMatchObject({ sessionId, entry: { sendPolicy: "deny" } });
  });

  it("is met where the index is written in place while the store is open", async () => {
    const { root, sessions } = folderWithEntry({ sessionId: "other", updatedAt: 1 });
    await using store = createJsonlStore({ root });
    expect(await store.load(ref)).toMatchObject({ sessionId: "other" });
    const second = sessionRef({ key: "agent:main:discord:group:6" });
    const path = join(sessions, "sessions.json");
    const entries = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
    writeFileSync(path, JSON.stringify({ ...entries, [second.key]: entry }));
    expect(await store.load(second)).toMatchObject({ sessionId, entry: { sendPolicy: "deny" } });
  });

  it("can be archived and purged, and does not come back", async () => {
    const { root } = folderWithEntry();
    await using store = createJsonlStore({ root });
    await store.remove(ref, { purge: true });
    expect(await store.load(ref)).toBeNull();
    await store.close();
    await using again = createJsonlStore({ root });
    expect((await again.list({ state: "any" })).sessions).toEqual([]);
  });
});
