import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import type { Finding } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { mainRef, storeWithSession, transcriptOf, userDraft } from "./session-fixture.ts";
import { filesBelow, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

describe("a repair", () => {
  it("makes one whole copy although two processes repair at once", { tags: ["slow"] }, async () => {
    const root = newFolder();
    const writer = await storeWithSession(root, { index: false, sessionsJson: false });
    const texts = Array.from({ length: 900 }, (_, index) => `${index} ${"x".repeat(2000)}`);
    await writer.append(mainRef, texts.map(userDraft));
    await writer.append(mainRef, [userDraft("last")]);
    await writer.close();
    const path = transcriptOf(root);
    writeFileSync(path, readFileSync(path, "utf8").replace('"content":"450 ', '"content":"450 \n'));
    const stores = [1, 2].map(() => createJsonlStore({ root, index: false, sessionsJson: false }));
    // The second begins when the first is under way.
    const repairs = stores.map(async (store, index) => {
      for (let turn = 0; turn < index * 3; turn++) await new Promise((resolve) => setImmediate(resolve));
      const found: Finding[] = [];
      for await (const finding of store.maintenance!.repair()) found.push(finding);
      return found;
    });
    for (const found of await Promise.all(repairs)) expect(found.map(({ code }) => code)).toContain("LINE_MALFORMED");
    for (const store of stores) await store.close();
    const kept = filesBelow(root).filter((name) => name.includes("repaired"));
    expect(kept.map((name) => name.slice(name.lastIndexOf("/") + 1))).toEqual([
      "s1.jsonl",
      "s1.jsonl.removed",
      "s1.jsonl.report.json",
    ]);
    copyFileSync(`${root}/${kept[0]}`, path);
    await using again = createJsonlStore({ root, index: false, sessionsJson: false });
    const whole: unknown[] = [];
    for await (const { records } of again.read(mainRef)) whole.push(...records.map(({ record }) => record["message"]));
    expect(whole.length).toBe(902);
    expect(whole.at(-1)).toMatchObject({ content: "last" });
  });

  it("fails with an error of ours, whichever call fails", async () => {
    const root = newFolder();
    await (await storeWithSession(root, { index: false, sessionsJson: false })).close();
    writeFileSync(transcriptOf(root), `${readFileSync(transcriptOf(root), "utf8")}{"half\n`);
    const fail = (): never => {
      throw Object.assign(new Error("EIO: injected"), { code: "EIO", errno: -5, syscall: "unlink" });
    };
    const store = createJsonlStore({ root, index: false, files: { ...nodeFiles, remove: fail, flushFolder: fail } });
    const repairing = async (): Promise<void> => {
      for await (const finding of store.maintenance!.repair()) expect(finding.code).toBeTypeOf("string");
    };
    await expect(repairing()).rejects.toMatchObject({ code: "STORE_IO", outcome: "unknown" });
    await expect(store.maintenance!.backup(`${newFolder()}/copy`)).rejects.toMatchObject({ code: "STORE_IO" });
    await store.close();
  });

  it("takes a line that was imported with its carriage return as it is, as verify does", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    const record = { ...userDraft("a"), id: "a", parentId: null, timestamp: "2026-01-01T00:00:00.000Z" };
    await store.append(mainRef, [{ source: `${JSON.stringify(record)}\r` }]);
    for (const facet of [store.maintenance?.verify({ full: true }), store.maintenance?.repair()])
      for await (const finding of facet ?? []) expect.unreachable(finding.message);
    await store.close();
  });
});
