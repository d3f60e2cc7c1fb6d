import { execFileSync, spawn } from "node:child_process";
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { sessionRef, type SessionEvent } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { faultyFiles } from "./faulty-files.ts";
import {
  findingCodesOf,
  kindsOf,
  mainRef,
  storeWithSession,
  textsOf,
  transcriptOf,
  userDraft,
} from "./session-fixture.ts";
import { contentsBelow, temporaryFolders } from "./temporary-folder.ts";

const child = bundledWorker(new URL("./many-hands-child.ts", import.meta.url));

const newFolder = temporaryFolders();

describe("what lies where a transcript belongs", () => {
  it.for([
    ["a pipe", (path: string) => execFileSync("mkfifo", [path])],
    ["a folder", (path: string) => mkdirSync(path)],
    ["a link", (path: string) => execFileSync("ln", ["-s", "/etc/passwd", path])],
  ] as const)("may be %s, which is refused and holds nobody up", async ([, make]) => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    await store.append(mainRef, [userDraft("one")]);
    const path = transcriptOf(root);
    renameSync(path, `${root}/kept`);
    make(path);
    for (const work of [
      () => store.load(mainRef),
      () => store.append(mainRef, [userDraft("two")]),
      () => store.fork?.fork(mainRef, sessionRef({ key: "agent:main:f" }), { sessionId: "f" }),
    ])
      await expect(work()).rejects.toMatchObject({ code: "PATH_UNSAFE" });
    rmSync(path, { recursive: true });
    renameSync(`${root}/kept`, path);
    await store.append(mainRef, [userDraft("two")]);
    expect(await textsOf(store)).toEqual(["one", "two"]);
    await store.close();
  });
});

describe("a transcript that changes under the store", () => {
  it("by a rename is read anew before anything is written to it", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    await store.append(mainRef, [userDraft("one"), userDraft("two")]);
    const path = transcriptOf(root);
    const [header = "", first = ""] = readFileSync(path, "utf8").split("\n");
    // An envelope without its checksum, as earlier versions wrote it.
    writeFileSync(`${root}/other`, `${header}\n${first.replace(/"batch":\[1,2\],|,"sum":\d+/g, "")}\n`);
    renameSync(`${root}/other`, path);
    expect((await store.append(mainRef, [userDraft("three")])).records[0]?.seq).toBe(2);
    expect(await textsOf(store)).toEqual(["one", "three"]);
    await store.close();
  });

  it("by being cut off goes on from what is left", async () => {
    const root = newFolder();
    const events: SessionEvent[] = [];
    const store = await storeWithSession(root, { sessionsJson: false, onEvent: (event) => void events.push(event) });
    for (const text of ["one", "two", "three"]) await store.append(mainRef, [userDraft(text)]);
    const path = transcriptOf(root);
    const size = readFileSync(path, "utf8").split("\n").slice(0, 2).join("\n").length + 40;
    truncateSync(path, size);
    // The second record and the third were acknowledged: nothing else gets their places.
    expect((await store.append(mainRef, [userDraft("four")])).records[0]?.seq).toBe(4);
    expect(await kindsOf(store)).toEqual(["one", "malformed", "lost", "four"]);
    expect(findingCodesOf(events)).toContain("RECORD_MISSING");
    await store.close();
  });

  it("by a copy of itself with more in it is read on", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    await store.append(mainRef, [userDraft("one")]);
    const path = transcriptOf(root);
    copyFileSync(path, `${root}/copy`);
    appendFileSync(
      `${root}/copy`,
      '{"type":"message","id":"x","parentId":null,"timestamp":"2026-01-02T03:04:05.006Z","message":{"role":"user","content":"theirs"}}\n',
    );
    renameSync(`${root}/copy`, path);
    await store.append(mainRef, [userDraft("two")]);
    expect(await textsOf(store)).toEqual(["one", "theirs", "two"]);
    await store.close();
  });
});

describe("a computer in trouble", () => {
  it("without room in the entries log refuses the entry and keeps the old one", async () => {
    const root = newFolder();
    await (await storeWithSession(root, { sessionsJson: false })).close();
    const faults = faultyFiles();
    const store = createJsonlStore({ root, files: faults.files, sessionsJson: false });
    await store.load(mainRef);
    faults.limitBytes(20);
    await expect(store.append(mainRef, [], { entry: { label: "new" } })).rejects.toMatchObject({
      code: "STORE_FULL",
      outcome: "not-applied",
    });
    expect((await store.load(mainRef))?.entry["label"]).toBeUndefined();
    faults.reset();
    await store.append(mainRef, [], { entry: { label: "later" } });
    await store.close();
    expect((await createJsonlStore({ root }).load(mainRef))?.entry["label"]).toBe("later");
  });

  it("without another file handle says so and goes on when there are some", async () => {
    const root = newFolder();
    const writer = await storeWithSession(root, { sessionsJson: false });
    await writer.append(mainRef, [userDraft("one")]);
    await writer.close();
    let isEmpty = true;
    const files = {
      ...nodeFiles,
      open(path: string, mode: Parameters<typeof nodeFiles.open>[1]) {
        if (isEmpty) throw Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
        return nodeFiles.open(path, mode);
      },
    };
    const store = createJsonlStore({ root, files, sessionsJson: false });
    await expect(store.append(mainRef, [userDraft("two")])).rejects.toMatchObject({
      code: "STORE_IO",
      outcome: "not-applied",
    });
    isEmpty = false;
    await store.append(mainRef, [userDraft("two")]);
    expect(await textsOf(store)).toEqual(["one", "two"]);
    await store.close();
  });

  it("whose clock is set back keeps the order and never lets activity go back", async () => {
    const root = newFolder();
    let aheadMs = 0;
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs };
    const store = await storeWithSession(root, { sessionsJson: false, clock });
    await store.append(mainRef, [userDraft("one")], { idempotencyKey: "k" });
    const before = await store.load(mainRef);
    aheadMs = -86_400_000;
    await store.append(mainRef, [userDraft("two")], { entry: { label: "x" } });
    const after = await store.load(mainRef);
    expect(after?.updatedAtMs).toBe(before?.updatedAtMs);
    expect((await store.append(mainRef, [userDraft("one")], { idempotencyKey: "k" })).replayed).toBe(true);
    expect(await textsOf(store)).toEqual(["one", "two"]);
    await store.close();
  });

  it("keeps a session with the longest key, and one that differs in its last letter", async () => {
    const root = newFolder();
    const store = createJsonlStore({ root });
    const keys = ["a", "b"].map((last) => `agent:main:${"k".repeat(300)}${last}`);
    for (const [index, key] of keys.entries()) {
      await store.save(sessionRef({ key }), { sessionId: `long-${index}` }, { ifRevision: null });
      await store.append(sessionRef({ key }), [userDraft(key)]);
    }
    await store.close();
    const again = createJsonlStore({ root });
    for (const key of keys) expect(await textsOf(again, sessionRef({ key }))).toEqual([key]);
    await again.close();
  });
});

describe("processes that append, fork and redact at once", () => {
  it(
    "lose nothing, share whole appends only, and leave nothing of what was redacted",
    { tags: ["slow"], timeout: 120_000 },
    async () => {
      const root = newFolder();
      const store = await storeWithSession(root, { sessionsJson: false });
      const secrets = Array.from({ length: 12 }, (_, index) => ({
        id: `secret-${index}`,
        ...userDraft(`hidden-${index}`),
      }));
      await store.append(mainRef, secrets);
      const run = (what: string, name: string, rounds: number): Promise<readonly string[]> =>
        new Promise((resolve, reject) => {
          const running = spawn(process.execPath, [child, root, what, name, String(rounds)], {
            stdio: ["ignore", "pipe", "pipe"],
          });
          let [output, errors] = ["", ""];
          running.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
          running.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
          running.on("close", () =>
            errors === "" ? resolve(output.split("\n").slice(0, -1)) : reject(new Error(errors)),
          );
        });
      const [one, two, forks] = await Promise.all([
        run("append", "p", 60),
        run("append", "q", 60),
        run("fork", "fork", 12),
        run("redact", "r", 12),
      ]);
      const found = new Map<string, string>();
      for await (const { records } of store.read(mainRef)) for (const { seq, id } of records) found.set(`${seq}`, id);
      for (const line of [...one, ...two]) expect(found.get(line.split(" ")[0] ?? "")).toBe(line.split(" ")[1]);
      expect(found.size).toBe(12 + 2 * 2 * 60);
      expect(forks.length).toBe(12);
      for (const line of forks) {
        const [sessionId = "", lastSeq = ""] = line.split(" ");
        const ids: string[] = [];
        for await (const { records } of store.read(sessionRef({ key: `agent:main:${sessionId}` })))
          ids.push(...records.map(({ id }) => id));
        expect(ids).toEqual(Array.from({ length: Number(lastSeq) }, (_, index) => found.get(String(index + 1))));
        // Appends of two are shared whole or not at all.
        expect((Number(lastSeq) - 12) % 2).toBe(0);
      }
      await store.close();
      for (const bytes of contentsBelow(root)) expect(Buffer.from(bytes).toString("latin1")).not.toContain('"hidden-');
    },
  );
});
