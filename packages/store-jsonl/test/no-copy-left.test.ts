import { execFileSync } from "node:child_process";
import { appendFileSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sessionRef } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { faultyFiles } from "./faulty-files.ts";
import { mainRef, storeWithSession, transcriptOf, userDraft } from "./session-fixture.ts";
import { filesBelow, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

/** Files below the root with the word in them. */
function holding(root: string, word: string): readonly string[] {
  return filesBelow(root).filter((path) => !path.includes("/locks/") && readFileSync(`${root}/${path}`).includes(word));
}

async function all<T>(items: AsyncIterable<T> | undefined): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const item of items ?? []) found.push(item);
  return found;
}

/** By another process. */
function change(root: string, how: "redacted" | "purged"): void {
  execFileSync(process.execPath, [join(import.meta.dirname, "change-child.ts"), root, how], { timeout: 60_000 });
}

describe.for(["redacted", "purged"] as const)("what was %s", (how) => {
  it("is in no copy that a repair made, nor in what it removed", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    await store.append(mainRef, [{ id: "secret", ...userDraft("hidden") }, userDraft("plain")]);
    appendFileSync(transcriptOf(root), "hidden in no record\n");
    await all(store.maintenance?.repair());
    await store.close();
    expect(holding(root, "hidden").filter((path) => path.includes("/repaired/"))).toHaveLength(2);
    change(root, how);
    // The line that was no record of the session was not redacted, and is where it was.
    expect(holding(root, "hidden")).toEqual(how === "purged" ? [] : ["agents/main/sessions/s1.jsonl"]);
    expect(holding(root, '"hidden"')).toEqual([]);
  });

  it("is in no file that a process left which died while it wrote, repaired or forked", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    await store.append(mainRef, [{ id: "secret", ...userDraft("hidden") }]);
    const otherRef = sessionRef({ key: "agent:main:other" });
    await store.save(otherRef, { sessionId: "s10" }, { ifRevision: null });
    await store.append(otherRef, [userDraft("theirs")]);
    await store.close();
    const own = `${root}/agents/main/throughline`;
    mkdirSync(`${own}/repaired`, { recursive: true });
    const left = ["s1.jsonl.tmp", "s1.tmp", "repaired/s1.jsonl.tmp", "torn/s1.jsonl.fork-1767323045006-x"];
    for (const name of left) copyFileSync(transcriptOf(root), `${own}/${name}`);
    const theirs = ["s10.jsonl.tmp", "repaired/s10.jsonl.tmp", "torn/s10.jsonl.1767323045006.5"];
    for (const name of theirs) copyFileSync(transcriptOf(root, "s10"), `${own}/${name}`);
    change(root, how);
    expect(holding(root, "hidden")).toEqual([]);
    for (const name of theirs) expect(existsSync(`${own}/${name}`)).toBe(true);
  });

  it("while a repair reads it is in no copy of that repair", async () => {
    const root = newFolder();
    const other = await storeWithSession(root);
    await other.append(mainRef, [{ id: "secret", ...userDraft("hidden") }]);
    await other.close();
    appendFileSync(transcriptOf(root), "no record\n");
    const faults = faultyFiles();
    let isChanged = false;
    const { files } = faults;
    const store = createJsonlStore({
      root,
      files: {
        ...files,
        flushNow(handle) {
          files.flushNow(handle);
          // The copy is whole by now, and not yet kept.
          if (!isChanged) change(root, how);
          isChanged = true;
        },
      },
    });
    const findings = await all(store.maintenance?.repair());
    await store.close();
    expect(isChanged).toBe(true);
    expect(holding(root, "hidden")).toEqual([]);
    expect(findings.some(({ code }) => code === "LINE_MALFORMED")).toBe(how === "redacted");
  });
});

describe("a purge", () => {
  it("leaves nothing of the entry in what was torn off the entries log", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    await store.close();
    writeFileSync(`${root}/agents/main/throughline/torn/entries.log.1767323045006.5`, '{"op":"save","label":"hidden');
    change(root, "purged");
    expect(holding(root, "hidden")).toEqual([]);
  });
});
