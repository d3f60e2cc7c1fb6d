import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { expect, it } from "vitest";
import { mainRef } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

const operations: readonly (readonly [string, (store: SessionStore) => Promise<unknown>])[] = [
  ["load", (store) => store.load(mainRef)],
  ["list", (store) => store.list()],
  ["save", (store) => store.save(mainRef, { sessionId: "s1" }, { ifRevision: null })],
  ["verify", async (store) => store.maintenance?.verify()[Symbol.asyncIterator]().next()],
];

it.each([
  ["the root", "", "file"],
  ["a folder above the root", "sub", "file"],
  ["the folder of the agents", "", "agents"],
])("a file in the place of %s is named with a remedy for it", async (_what, below, name) => {
  const folder = newFolder();
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), "text");
  const root = name === "agents" ? folder : join(folder, name, below);
  for (const [what, work] of operations) {
    await using store = createJsonlStore({ root });
    const failure: unknown = await work(store).then(
      () => null,
      (error: unknown) => error,
    );
    expect([what, failure]).toEqual([
      what,
      expect.objectContaining({
        code: "PATH_UNSAFE",
        outcome: "not-applied",
        remedy: "Move the file away, or give the store the path of a folder.",
      }),
    ]);
  }
});
