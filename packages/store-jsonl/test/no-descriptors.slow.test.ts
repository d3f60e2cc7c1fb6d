import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { sessionRef } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { type Files, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { textsOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

/** This computer's files, of which only so many may be open. */
function fewFiles(limit: number): Files & { refusals(): number } {
  const open = new Set<number>();
  let refused = 0;
  const assertRoom = (): void => {
    if (open.size < limit) return;
    refused++;
    throw Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE", syscall: "open" });
  };
  return {
    ...nodeFiles,
    refusals: () => refused,
    open(path, mode) {
      assertRoom();
      const handle = nodeFiles.open(path, mode);
      open.add(handle);
      return handle;
    },
    close(handle) {
      open.delete(handle);
      nodeFiles.close(handle);
    },
    flushFolder(path) {
      assertRoom();
      nodeFiles.flushFolder(path);
    },
    names(path) {
      assertRoom();
      return nodeFiles.names(path);
    },
  };
}

describe("a process that may open no more files", () => {
  it("goes on with more sessions than it may have open, in several agents", async () => {
    const files = fewFiles(16);
    const store = createJsonlStore({ root: newFolder(), files });
    const refs = Array.from({ length: 30 }, (_, index) => sessionRef({ key: `agent:a${index % 2}:s${index}` }));
    for (const [index, ref] of refs.entries()) await store.save(ref, { sessionId: `s${index}` }, { ifRevision: null });
    for (const text of ["first", "second"])
      for (const ref of refs) await store.append(ref, [userDraft(text)], { entry: { label: text } });
    expect((await store.list()).sessions).toHaveLength(30);
    for (const ref of refs) expect(await textsOf(store, ref)).toEqual(["first", "second"]);
    await store.close();
    expect(files.refusals()).toBeGreaterThan(0);
  });

  it.skipIf(!existsSync("/proc/self/fd"))(
    "waits for them where 300 sessions are written at once, in whatever order they were asked for",
    { timeout: 120_000 },
    () => {
      const root = newFolder();
      const child = join(import.meta.dirname, "few-descriptors-child.ts");
      const { stdout, stderr } = spawnSync(
        "sh",
        ["-c", `ulimit -n 64; exec "$0" "$1" "$2"`, process.execPath, child, root],
        {
          encoding: "utf8",
        },
      );
      expect([stdout, stderr]).toEqual(["300 saves, 600 appends, 300 loads, 300 reads, 20 removes, 0 findings\n", ""]);
    },
  );

  it.skipIf(!existsSync("/proc/self/fd"))(
    "keeps the locks of hundreds of agents in so many files, and no more",
    async () => {
      const root = newFolder();
      await using store = createJsonlStore({ root, index: false, sessionsJson: false });
      const refs = Array.from({ length: 400 }, (_, index) => sessionRef({ key: `agent:a${index % 20}:s${index}` }));
      const openLocks = (): number =>
        readdirSync("/proc/self/fd").filter((name) => linkOf(`/proc/self/fd/${name}`).includes("/locks/")).length;
      const durability = "none";
      for (const [index, ref] of refs.entries())
        await store.save(ref, { sessionId: `s${index}` }, { ifRevision: null, durability });
      const most = openLocks();
      expect(most).toBeGreaterThan(200);
      expect(most).toBeLessThanOrEqual(256);
      // Those that were let go of are taken again when they are wanted, also by many at once.
      await Promise.all(refs.map((ref) => store.append(ref, [userDraft("x")], { durability })));
      for (const ref of refs) expect(await textsOf(store, ref)).toEqual(["x"]);
    },
  );
});

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // The folder itself was open when it was read.
    return "";
  }
}
