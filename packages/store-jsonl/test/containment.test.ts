import {
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  unlinkSync,
  chmodSync,
  writeFileSync,
} from "node:fs";
import type { SessionEvent } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { type Files, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { findingCodesOf, mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { contentsBelow, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

/** As where there is no /proc. */
const filesWithoutNames: Files = { ...nodeFiles, whereIs: () => null };

const ways: readonly (readonly [string, Files])[] = [
  ["by the names of open files", nodeFiles],
  ["by the folders, where the kernel names no open file", filesWithoutNames],
];

describe.for(ways)("the store keeps inside its root %s", ([, files]) => {
  const swapped = ["agents", "agents/main", "agents/main/sessions", "agents/main/throughline"];

  it.for(swapped)("when %s becomes a link while it is open", async (name) => {
    const root = newFolder();
    const elsewhere = `${newFolder()}/copy`;
    const store = await storeWithSession(root, { files, sessionsJson: false });
    const { records } = await store.append(mainRef, [userDraft("one")], { entry: { label: "x" } });
    cpSync(`${root}/${name}`, elsewhere, { recursive: true });
    const before = contentsBelow(elsewhere);
    renameSync(`${root}/${name}`, `${root}/kept`);
    symlinkSync(elsewhere, `${root}/${name}`);
    const work: readonly (() => Promise<unknown>)[] = [
      () => store.append(mainRef, [userDraft("two")]),
      () => store.append(mainRef, [], { entry: { label: "y" } }),
      () => store.save(mainRef, { sessionId: "s1", label: "z" }, { ifRevision: 2 }),
      () => store.redact(mainRef, [records[0]?.id ?? ""], { reason: "asked to" }),
      () => store.move(mainRef, { kind: "archive" }),
      () => store.remove(mainRef, { purge: true }),
    ];
    for (const each of work) await expect(each()).rejects.toMatchObject({ code: "PATH_UNSAFE" });
    expect(contentsBelow(elsewhere)).toEqual(before);
    unlinkSync(`${root}/${name}`);
    renameSync(`${root}/kept`, `${root}/${name}`);
    await store.append(mainRef, [userDraft("two")]);
    expect(await textsOf(store)).toEqual(["one", "two"]);
    await store.close();
  });

  it("when its root becomes a link to another store", async () => {
    const folder = newFolder();
    const root = `${folder}/store`;
    const store = await storeWithSession(root, { files, sessionsJson: false });
    await store.append(mainRef, [userDraft("one")]);
    cpSync(root, `${folder}/copy`, { recursive: true });
    const before = contentsBelow(`${folder}/copy`);
    renameSync(root, `${folder}/kept`);
    symlinkSync(`${folder}/copy`, root);
    await expect(store.append(mainRef, [userDraft("two")])).rejects.toMatchObject({ code: "PATH_UNSAFE" });
    expect(contentsBelow(`${folder}/copy`)).toEqual(before);
    await store.close();
    expect(contentsBelow(`${folder}/copy`)).toEqual(before);
  });
});

describe("a folder of the store that is moved out of it, with a link to where it went", () => {
  it("is not written to, although its files are the same", async () => {
    const root = newFolder();
    const elsewhere = `${newFolder()}/moved`;
    const store = await storeWithSession(root, { sessionsJson: false });
    await store.append(mainRef, [userDraft("one")]);
    renameSync(`${root}/agents/main`, elsewhere);
    symlinkSync(elsewhere, `${root}/agents/main`);
    const before = readFileSync(`${elsewhere}/sessions/s1.jsonl`);
    await expect(store.append(mainRef, [userDraft("two")])).rejects.toMatchObject({
      code: "PATH_UNSAFE",
      outcome: "not-applied",
    });
    expect(readFileSync(`${elsewhere}/sessions/s1.jsonl`)).toEqual(before);
    unlinkSync(`${root}/agents/main`);
    renameSync(elsewhere, `${root}/agents/main`);
    await store.append(mainRef, [userDraft("two")]);
    expect(await textsOf(store)).toEqual(["one", "two"]);
    await store.close();
  });
});

describe("a root", () => {
  it("that is a symbolic link is refused, and nothing is made behind it", async () => {
    const folder = newFolder();
    mkdirSync(`${folder}/real`);
    symlinkSync(`${folder}/real`, `${folder}/link`);
    const store = createJsonlStore({ root: `${folder}/link/` });
    const save = store.save(mainRef, { sessionId: "s1" }, { ifRevision: null });
    await expect(save).rejects.toMatchObject({ code: "PATH_UNSAFE", outcome: "not-applied" });
    await expect(store.load(mainRef)).rejects.toMatchObject({ code: "PATH_UNSAFE" });
    await store.close();
    expect(existsSync(`${folder}/real/agents`)).toBe(false);
  });

  it("may lie behind one: the way to it is the user's", async () => {
    const folder = newFolder();
    mkdirSync(`${folder}/real`);
    symlinkSync(`${folder}/real`, `${folder}/link`);
    const store = await storeWithSession(`${folder}/link/store`);
    await store.append(mainRef, [userDraft("one")]);
    expect(await textsOf(store)).toEqual(["one"]);
    await store.close();
    expect(existsSync(`${folder}/real/store/agents/main/sessions/s1.jsonl`)).toBe(true);
  });
});

describe("a file with a second name", () => {
  it("is not taken in as a transcript, until that name is gone", async () => {
    const root = newFolder();
    const elsewhere = `${newFolder()}/theirs`;
    const store = await storeWithSession(root, { sessionsJson: false });
    const id = "22222222-aaaa-4aaa-8aaa-222222222222";
    const header = { type: "session", version: 3, id, timestamp: "2026-01-02T03:04:05.006Z", cwd: "/" };
    writeFileSync(elsewhere, `${JSON.stringify(header)}\n`);
    linkSync(elsewhere, transcriptOf(root, id));
    expect((await store.list()).sessions).toHaveLength(1);
    const found: string[] = [];
    for await (const { code, path } of store.maintenance?.verify() ?? [])
      if (path === transcriptOf(root, id)) found.push(code);
    expect(found).toEqual(["FILE_UNREADABLE"]);
    unlinkSync(elsewhere);
    expect((await store.list()).sessions).toHaveLength(2);
    await store.close();
  });

  it.for(["sessions/s1.jsonl", "throughline/entries.log"])("is read and not written to: %s", async (name) => {
    const root = newFolder();
    const first = await storeWithSession(root, { sessionsJson: false });
    await first.append(mainRef, [userDraft("one")]);
    await first.close();
    const path = `${root}/agents/main/${name}`;
    const elsewhere = `${newFolder()}/theirs`;
    linkSync(path, elsewhere);
    const before = readFileSync(elsewhere);
    const store = createJsonlStore({ root, sessionsJson: false });
    expect(await textsOf(store)).toEqual(["one"]);
    const write = (): Promise<unknown> =>
      name.endsWith(".log")
        ? store.append(mainRef, [], { entry: { label: "x" } })
        : store.append(mainRef, [userDraft("two")]);
    await expect(write()).rejects.toMatchObject({ code: "PATH_UNSAFE", outcome: "not-applied" });
    expect(readFileSync(elsewhere)).toEqual(before);
    await store.close();
    unlinkSync(elsewhere);
    const again = createJsonlStore({ root, sessionsJson: false });
    await again.append(mainRef, [userDraft("two")], { entry: { label: "x" } });
    expect(await textsOf(again)).toEqual(["one", "two"]);
    await again.close();
  });
});

describe("folders that another program made for everybody to see", () => {
  it("are made private when the store first writes, and the root is left as it is", async () => {
    const root = newFolder();
    chmodSync(root, 0o755);
    mkdirSync(`${root}/agents/main/sessions`, { recursive: true });
    const folders = ["agents", "agents/main", "agents/main/sessions"];
    for (const name of folders) chmodSync(`${root}/${name}`, 0o755);
    const events: SessionEvent[] = [];
    const store = await storeWithSession(root, { onEvent: (event) => void events.push(event) });
    for (const name of folders) expect(statSync(`${root}/${name}`).mode & 0o777).toBe(0o700);
    expect(statSync(root).mode & 0o777).toBe(0o755);
    expect(findingCodesOf(events)).toEqual([]);
    await store.close();
  });

  it("and that this user cannot change are reported by verify", async () => {
    const root = newFolder();
    const makePrivate = (): void => {
      throw Object.assign(new Error("EPERM: operation not permitted"), { code: "EPERM" });
    };
    const store = await storeWithSession(root, { sessionsJson: false });
    await store.close();
    chmodSync(`${root}/agents/main/sessions`, 0o755);
    const again = createJsonlStore({ root, sessionsJson: false, files: { ...nodeFiles, makePrivate } });
    await again.append(mainRef, [userDraft("one")]);
    const found: string[] = [];
    for await (const { code, path } of again.maintenance?.verify() ?? []) found.push(`${code} ${path}`);
    expect(found).toEqual([`FOLDER_EXPOSED ${root}/agents/main/sessions`]);
    await again.close();
  });
});
