import { readFileSync } from "node:fs";
import { nodeFiles } from "../src/files.ts";
import { createJsonlStore } from "@throughline/store-jsonl";
import type { Files } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { mainRef, storeWithSession, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

describe("an append", () => {
  it.for([
    ["one short record", ["a"]],
    ["twenty records", Array.from({ length: 20 }, (_, at) => `record ${at}`)],
    ["a record of 3 MB", ["x".repeat(3_000_000)]],
    ["text beyond ASCII", ["žluťoučký kůň 🐎"]],
  ] as const)("reaches the file in one write that ends with a line feed: %s", async ([_name, texts]) => {
    const root = newFolder();
    await (await storeWithSession(root, { sessionsJson: false })).close();
    const sizes: number[] = [];
    const files: Files = {
      ...nodeFiles,
      write(...parameters) {
        const written = nodeFiles.write(...parameters);
        // What `tail -f` finds after this write.
        sizes.push(readFileSync(transcriptOf(root)).length);
        return written;
      },
    };
    await using store = createJsonlStore({ root, sessionsJson: false, files });
    const before = readFileSync(transcriptOf(root));
    for (const round of [1, 2, 3]) {
      await store.append(mainRef, texts.map(userDraft));
      expect(sizes).toHaveLength(round);
    }
    const after = readFileSync(transcriptOf(root));
    expect(sizes.at(-1)).toBe(after.length);
    for (const size of sizes) expect(after[size - 1]).toBe(0x0a);
    expect(after.subarray(before.length).toString("utf8").split("\n")).toHaveLength(3 * texts.length + 1);
  });
});
