import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sessionRef, type SessionEvent, type SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { type Files, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { textsOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

function refOf(name: string): ReturnType<typeof sessionRef> {
  return sessionRef({ key: `agent:main:${name}` });
}

/** A folder of OpenClaw's with sessions that nobody of ours has met. */
function foreignFolder(...names: readonly string[]): string {
  const root = newFolder();
  const folder = join(root, "agents/main/sessions");
  mkdirSync(folder, { recursive: true });
  const timestamp = "2026-01-02T03:04:05.006Z";
  for (const name of names) {
    const message = { role: "user", content: `text of ${name}` };
    const lines = [
      { type: "session", version: 3, id: name, timestamp, cwd: "/" },
      { type: "message", id: "a", parentId: null, timestamp, message },
    ];
    writeFileSync(join(folder, `${name}.jsonl`), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  }
  const entries = names.map((name) => [refOf(name).key, { sessionId: name, updatedAt: 1 }]);
  writeFileSync(join(folder, "sessions.json"), JSON.stringify(Object.fromEntries(entries)));
  return root;
}

/** Root may do everything, and tests run as root in containers. */
function refusing(name: string): Files {
  return {
    ...nodeFiles,
    open(path, mode) {
      if (path.endsWith(name)) throw Object.assign(new Error(`EACCES: ${path}`), { code: "EACCES" });
      return nodeFiles.open(path, mode);
    },
  };
}

async function idsIn(store: SessionStore): Promise<readonly string[]> {
  return (await store.list()).sessions.map(({ sessionId }) => sessionId).toSorted();
}

describe("a transcript that nobody may read", () => {
  it.each([
    ["was never met", false],
    ["is known", true],
  ])("and that %s hides none of the others", async (_what, isKnown) => {
    const root = foreignFolder("one", "two", "three");
    if (isKnown) await using(createJsonlStore({ root }), idsIn);
    const said: SessionEvent[] = [];
    const store = createJsonlStore({ root, index: false, files: refusing("two.jsonl"), onEvent: (e) => said.push(e) });
    expect(await idsIn(store)).toEqual(isKnown ? ["one", "three", "two"] : ["one", "three"]);
    expect(said).toContainEqual(
      expect.objectContaining({
        finding: expect.objectContaining({ code: "FILE_UNREADABLE", key: refOf("two").key }) as unknown,
      }),
    );
    const codes: unknown[] = [];
    for await (const { code, path } of store.maintenance?.verify() ?? [])
      if (code === "FILE_UNREADABLE") codes.push([code, path?.slice(-9)]);
    expect(codes).toEqual([["FILE_UNREADABLE", "two.jsonl"]]);
    for await (const { code } of store.maintenance?.repair() ?? []) expect(code).toBe("FILE_UNREADABLE");
    await store.append(refOf("one"), [userDraft("on")]);
    if (isKnown) await expect(textsOf(store, refOf("two"))).rejects.toMatchObject({ code: "STORE_IO" });
    await store.close();
    await using(createJsonlStore({ root }), async (again) => expect(await idsIn(again)).toHaveLength(3));
  });
});

describe("a folder that this user may not enter", () => {
  it("is named with what gives access, and nothing counts as perhaps applied", async () => {
    const root = newFolder();
    const denied = `${root}/agents/main`;
    const files: Files = {
      ...nodeFiles,
      facts(path) {
        if (path.startsWith(`${denied}/`))
          throw Object.assign(new Error(`EACCES: ${path}`), { code: "EACCES", path, syscall: "lstat" });
        return nodeFiles.facts(path);
      },
    };
    mkdirSync(denied, { recursive: true });
    const store = createJsonlStore({ root, files });
    for (const work of [() => store.append(refOf("x"), [userDraft("x")]), () => store.load(refOf("x"))])
      await expect(work()).rejects.toMatchObject({
        code: "STORE_READ_ONLY",
        outcome: "not-applied",
        remedy: expect.stringContaining(`chmod u+rwX '${denied}`) as string,
      });
  });
});

describe("a folder that nobody may write to", () => {
  it("gives the sessions it has by their keys too", async () => {
    const root = foreignFolder("one");
    const store = createJsonlStore({ root, files: { ...nodeFiles, isWritable: () => false } });
    expect(await idsIn(store)).toEqual(["one"]);
    expect((await store.load(refOf("one")))?.messageCount).toBe(1);
    const texts: unknown[] = [];
    for await (const page of store.read(refOf("one")))
      for (const { record } of page.records)
        texts.push((record["message"] as { content?: unknown } | undefined)?.content);
    expect(texts).toContain("text of one");
    await store.close();
  });
});

async function using<T>(store: SessionStore, work: (store: SessionStore) => Promise<T>): Promise<T> {
  await using open = store;
  return await work(open);
}
