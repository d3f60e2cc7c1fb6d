import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { createJsonlStore } from "@throughline/store-jsonl";
import { nodeFiles } from "../src/files.ts";
import { expect, it } from "vitest";
import { mainRef } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

it("what sessions.json was made from is kept when its writing is cut off twice", async () => {
  const root = newFolder();
  const agent = `${root}/agents/main`;
  const [base, next] = [`${agent}/throughline/sessions-view.json`, `${agent}/throughline/sessions-view.next.json`];
  const saved = async (label: string, ifRevision: number | null, files = nodeFiles): Promise<void> => {
    const store = createJsonlStore({ root, files });
    await store.save(mainRef, { sessionId: "s1", label }, { ifRevision });
    await store.close();
  };
  await saved("one", null);
  const first = readFileSync(base);
  await saved("two", 1);
  const second = readFileSync(base, "utf8");
  // As it is when the power fails once sessions.json has its name, and its base has not.
  renameSync(base, next);
  writeFileSync(base, first, { mode: 0o600 });
  // And once more before the next sessions.json has its name.
  const rename: typeof nodeFiles.rename = (from, to) => {
    if (to.endsWith("/sessions.json")) throw Object.assign(new Error("EIO: cut off"), { code: "EIO", errno: -5 });
    nodeFiles.rename(from, to);
  };
  await saved("three", 2, { ...nodeFiles, rename });
  expect(readFileSync(`${agent}/sessions/sessions.json`, "utf8")).toContain('"two"');
  expect(readFileSync(next, "utf8")).toContain('"three"');
  expect(readFileSync(base, "utf8")).toBe(second);
});
