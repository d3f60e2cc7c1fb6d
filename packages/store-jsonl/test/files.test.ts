import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { SessionStore } from "@throughline/core";
import { killProcess } from "@throughline/store-conformance";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { faultyFiles } from "./faulty-files.ts";
import { mainRef, userDraft } from "./session-fixture.ts";
import { makeQuickFolder, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders(makeQuickFolder);
const scope = { namespace: "", agentId: "main" };
const putUntilKilled = fileURLToPath(new URL("put-until-killed.ts", import.meta.url));

async function* content(length: number, fill = 1): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < length; at += 100_000) yield new Uint8Array(Math.min(100_000, length - at)).fill(fill);
}

async function put(store: SessionStore, length: number, fill = 1): Promise<string> {
  return (await store.files!.put(scope, content(length, fill))).id;
}

async function lengthOf(store: SessionStore, id: string): Promise<number> {
  let bytes = 0;
  for await (const piece of store.files!.get(scope, id)) bytes += piece.byteLength;
  return bytes;
}

async function listed(store: SessionStore): Promise<{ id: string; bytes: number | null; references: number }[]> {
  return (await Array.fromAsync(store.files!.list(scope))).flat();
}

const folderOf = (root: string): string => join(root, "agents/main/throughline/files");

describe("files of a JSON Lines store", () => {
  it("are whole or not there after kill -9", { tags: ["slow"], timeout: 60_000 }, async () => {
    const root = newFolder();
    const said: string[] = [];
    for (let round = 0; round < 6; round++) {
      const killed = await killProcess({
        scriptPath: putUntilKilled,
        args: [root],
        execArgv: ["--conditions=@throughline/source"],
        maxDelayMs: 40,
      });
      expect(killed.stderr).toBe("");
      said.push(...killed.acknowledged);
    }
    await using store = createJsonlStore({ root });
    const files = await listed(store);
    expect(files.filter(({ bytes }) => bytes === null)).toEqual([]);
    for (const { id } of files) expect(await lengthOf(store, id)).toBe(900_000);
    const references = new Map(files.map((file) => [file.id, file.references]));
    for (const line of said) {
      const [what, id = ""] = line.split(" ");
      expect(references.get(id), line).toBeGreaterThanOrEqual(what === "append" ? 1 : 0);
    }
    // A slow disk leaves time for one put in each round.
    expect(said.length).toBeGreaterThanOrEqual(6);
  });

  it("are private files with the bytes under their id, and follow no link", async () => {
    const root = newFolder();
    await using store = createJsonlStore({ root });
    const id = await put(store, 300_000);
    const path = join(folderOf(root), id);
    expect([statSync(path).mode & 0o777, statSync(folderOf(root)).mode & 0o777]).toEqual([0o600, 0o700]);
    expect(readFileSync(path).length).toBe(300_000);
    writeFileSync(join(root, "elsewhere"), "secret");
    symlinkSync(join(root, "elsewhere"), join(folderOf(root), "0".repeat(64)));
    await expect(lengthOf(store, "0".repeat(64))).rejects.toMatchObject({ code: "PATH_UNSAFE" });
  });

  it.each([
    ["a full disk", "STORE_FULL"],
    ["a failed flush", "STORE_IO"],
  ])("are refused by %s with a typed error, and nothing of them stays", async (what, code) => {
    const root = newFolder();
    const faults = faultyFiles();
    await using store = createJsonlStore({ root, files: faults.files });
    await put(store, 10);
    if (what === "a full disk") faults.limitBytes(300_000);
    else faults.failNext("flush", "EIO");
    await expect(put(store, 700_000, 2)).rejects.toMatchObject({ code });
    faults.reset();
    expect(await listed(store)).toHaveLength(1);
    expect(readdirSync(folderOf(root))).toHaveLength(1);
    expect(await lengthOf(store, await put(store, 700_000, 2))).toBe(700_000);
  });

  it("with changed bytes are damage", async () => {
    const root = newFolder();
    await using store = createJsonlStore({ root });
    const id = await put(store, 700_000);
    writeFileSync(join(folderOf(root), id), new Uint8Array(700_000));
    await expect(lengthOf(store, id)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
  });

  it("with changed bytes are damage where a part is read, if they have one piece", async () => {
    const root = newFolder();
    await using store = createJsonlStore({ root });
    const id = await put(store, 5000);
    const path = join(folderOf(root), id);
    const part = (): Promise<Uint8Array[]> =>
      Array.fromAsync(store.files?.get(scope, id, { from: 100, to: 200 }) ?? []);
    expect(Buffer.concat(await part())).toHaveLength(100);
    for (const at of [3, 150, 4999]) {
      const whole = readFileSync(path);
      writeFileSync(
        path,
        Uint8Array.from(whole, (byte, index) => (index === at ? byte ^ 1 : byte)),
      );
      await expect(part()).rejects.toMatchObject({ code: "STORE_CORRUPT" });
      writeFileSync(path, whole);
    }
  });

  it("are in a backup with what refers to them, and go with the purge of it", async () => {
    const root = newFolder();
    await using store = createJsonlStore({ root });
    await store.save(mainRef, { sessionId: "s1" }, { ifRevision: null });
    const [used, unused] = [await put(store, 700_000), await put(store, 10)];
    const message = { role: "user", content: [{ type: "file", fileId: used }] };
    await store.append(mainRef, [{ type: "message", message }, userDraft("text")]);
    const before = await listed(store);
    await store.maintenance!.backup(join(root, "copy"));
    await using copy = createJsonlStore({ root: join(root, "copy") });
    expect((await listed(copy)).map(({ references }) => references)).toEqual(
      before.map(({ references }) => references),
    );
    expect(await lengthOf(copy, used)).toBe(700_000);
    await copy.remove(mainRef, { purge: true });
    expect((await listed(copy)).map(({ id }) => id)).toEqual([unused]);
    expect(readdirSync(join(root, "copy/agents/main/throughline/file-references"))).toEqual([]);
  });

  it("leave nothing of an upload whose process was killed, a day later", async () => {
    const root = newFolder();
    await using store = createJsonlStore({ root });
    await store.save(mainRef, { sessionId: "s1" }, { ifRevision: null });
    const id = await put(store, 10);
    const [old, young] = ["old.part", "young.part"].map((name) => join(folderOf(root), name)) as [string, string];
    for (const path of [old, young]) writeFileSync(path, "x", { mode: 0o600 });
    utimesSync(old, 1, 1);
    await store.append(mainRef, [
      { type: "message", message: { role: "user", content: [{ type: "file", fileId: id }] } },
    ]);
    await store.remove(mainRef, { purge: true });
    expect([existsSync(old), existsSync(young)]).toEqual([false, true]);
  });
});
