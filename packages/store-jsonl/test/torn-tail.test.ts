import { copyFileSync, readdirSync, readFileSync, rmSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sessionRef, type SessionEvent } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { findingCodesOf, mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { testSize } from "../../../tools/test-size.ts";
import { makeQuickFolder, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const newQuickFolder = temporaryFolders(makeQuickFolder);

/** A session of two records and then the given ones in one append; where that append begins and ends in the file. */
async function sessionEndingIn(
  root: string,
  texts: readonly string[],
): Promise<{ readonly from: number; readonly to: number }> {
  const store = await storeWithSession(root);
  await store.append(mainRef, [userDraft("first")]);
  await store.append(mainRef, [userDraft("second")]);
  const from = readFileSync(transcriptOf(root)).length;
  await store.append(mainRef, texts.map(userDraft));
  await store.close();
  return { from, to: readFileSync(transcriptOf(root)).length };
}

/** Where a write is cut off: at each of its first and last bytes, and in the short tier at every seventh between them. */
function cutsBetween(from: number, to: number): readonly number[] {
  const step = testSize({ short: 7, long: 1 });
  const sizes = Array.from({ length: to - from + 1 }, (_each, index) => from + index);
  return sizes.filter((size) => size < from + 8 || size > to - 8 || (size - from) % step === 0);
}

/** Cuts a file off, as a writer left it that died a while ago: nothing else knows what it was about to write. */
function tear(path: string, sizeBytes: number): void {
  rmSync(join(path, "../../throughline/index.db"), { force: true });
  truncateSync(path, sizeBytes);
  const agoSeconds = Date.now() / 1000 - 60;
  utimesSync(path, agoSeconds, agoSeconds);
}

describe("a write that was cut off", () => {
  it("costs nothing but itself, wherever the last line breaks off", { tags: ["slow"] }, async () => {
    const root = newQuickFolder();
    const { from, to } = await sessionEndingIn(root, ["third 😀"]);
    const path = transcriptOf(root);
    copyFileSync(path, `${root}/whole`);
    for (const size of cutsBetween(from, to)) {
      copyFileSync(`${root}/whole`, path);
      truncateSync(path, size);
      const store = createJsonlStore({ root, sessionsJson: false, index: false });
      const isComplete = size >= to - 1;
      expect((await store.load(mainRef))?.head.lastSeq, `cut at ${size}`).toBe(isComplete ? 3 : 2);
      const { records } = await store.append(mainRef, [userDraft("next")], { durability: "process" });
      expect(records[0]?.seq).toBe(isComplete ? 4 : 3);
      expect(await textsOf(store)).toEqual(["first", "second", ...(isComplete ? ["third 😀"] : []), "next"]);
      await store.close();
      const text = readFileSync(path, "utf8");
      expect(text.endsWith("\n")).toBe(true);
      expect(
        text
          .trimEnd()
          .split("\n")
          .every((line) => typeof JSON.parse(line) === "object"),
      ).toBe(true);
    }
  });

  it("is not what lines are whose ends became carriage returns: nothing is cut off, and an append says so", async () => {
    const root = newFolder();
    await sessionEndingIn(root, ["third", "fourth"]);
    const path = transcriptOf(root);
    const text = readFileSync(path, "utf8");
    for (const keptLines of [0, 1, 3]) {
      let at = 0;
      for (let count = 0; count < keptLines; count++) at = text.indexOf("\n", at) + 1;
      const changed = text.slice(0, at) + text.slice(at).replaceAll("\n", "\r");
      writeFileSync(path, changed);
      await using store = createJsonlStore({ root, sessionsJson: false, index: false });
      await expect(store.append(mainRef, [userDraft("next")])).rejects.toMatchObject({
        code: "STORE_CORRUPT",
        outcome: "not-applied",
      });
      expect(readFileSync(path, "utf8")).toBe(changed);
      expect(readdirSync(`${root}/agents/main/throughline/torn`)).toEqual([]);
    }
  });

  it("is set aside whatever fields its records have: those of another program's lines, too", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false, index: false });
    await store.append(mainRef, [userDraft("first")]);
    const { length } = readFileSync(transcriptOf(root));
    const strange = { uuid: "u", parentUuid: null, sessionId: "s" };
    await store.append(mainRef, [
      { ...userDraft("a"), ...strange },
      { ...userDraft("b"), ...strange },
    ]);
    await store.close();
    tear(transcriptOf(root), readFileSync(transcriptOf(root)).indexOf("\n", length) + 1);
    await using again = createJsonlStore({ root, sessionsJson: false, index: false });
    await again.append(mainRef, [userDraft("next")]);
    expect(await textsOf(again)).toEqual(["first", "next"]);
  });

  it("of four records leaves none of them, wherever it breaks off", { tags: ["slow"] }, async () => {
    const root = newQuickFolder();
    const { from, to } = await sessionEndingIn(root, ["a", "b", "c", "d"]);
    const path = transcriptOf(root);
    copyFileSync(path, `${root}/whole`);
    for (const size of cutsBetween(from, to - 2)) {
      copyFileSync(`${root}/whole`, path);
      truncateSync(path, size);
      const store = createJsonlStore({ root, sessionsJson: false, index: false });
      expect(await textsOf(store), `cut at ${size}`).toEqual(["first", "second"]);
      await store.append(mainRef, [userDraft("next")], { durability: "process" });
      expect(await textsOf(store)).toEqual(["first", "second", "next"]);
      await store.close();
    }
  });

  it("keeps the bytes it cuts off [C49]", async () => {
    const root = newFolder();
    const { from, to } = await sessionEndingIn(root, ["a", "b"]);
    const torn = readFileSync(transcriptOf(root)).subarray(from, to - 10);
    tear(transcriptOf(root), to - 10);
    const events: SessionEvent[] = [];
    const store = createJsonlStore({ root, onEvent: (event) => void events.push(event) });
    await store.load(mainRef);
    expect(readFileSync(transcriptOf(root)).length).toBe(to - 10);
    await store.append(mainRef, [userDraft("next")]);
    await store.close();
    const folder = `${root}/agents/main/throughline/torn`;
    const [name = ""] = readdirSync(folder);
    expect(readFileSync(`${folder}/${name}`)).toEqual(torn);
    expect(findingCodesOf(events)).toEqual(["BATCH_INCOMPLETE", "BATCH_INCOMPLETE"]);
  });

  it("is said once, however often the file is looked at, let go of and opened again", async () => {
    const root = newFolder();
    const { to } = await sessionEndingIn(root, ["a"]);
    tear(transcriptOf(root), to - 10);
    const events: SessionEvent[] = [];
    const store = createJsonlStore({ root, sessionsJson: false, onEvent: (event) => void events.push(event) });
    for (let look = 0; look < 3; look++) await textsOf(store);
    // More sessions than are kept open: the torn one is let go of.
    for (let index = 0; index < 70; index++) {
      const ref = sessionRef({ key: `agent:main:n${index}` });
      await store.save(ref, { sessionId: `n${index}` }, { ifRevision: null, durability: "none" });
      await store.append(ref, [userDraft("x")], { durability: "none" });
    }
    await textsOf(store);
    await store.list();
    expect(findingCodesOf(events)).toEqual(["TAIL_TORN"]);
    await store.append(mainRef, [userDraft("next")]);
    await store.close();
    expect(findingCodesOf(events)).toEqual(["TAIL_TORN", "TAIL_TORN"]);
  });

  it("in the entries log costs nothing but itself, wherever it breaks off", { tags: ["slow"] }, async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    const log = `${root}/agents/main/throughline/entries.log`;
    const from = readFileSync(log).length;
    await store.save(mainRef, { sessionId: "s1", label: "new" }, { ifRevision: 1 });
    await store.close();
    const whole = readFileSync(log);
    for (let size = from; size <= whole.length; size++) {
      writeFileSync(log, whole.subarray(0, size));
      const again = createJsonlStore({ root, sessionsJson: false, index: false });
      await again.load(mainRef);
      const change = again.save(mainRef, { sessionId: "s1", label: "other" }, { ifRevision: 1 });
      // Only its line feed is missing: the next writer completes it, and so meets a newer revision than it loaded.
      if (size >= whole.length - 1) await expect(change).rejects.toMatchObject({ code: "REVISION_CONFLICT" });
      else expect((await change).entry.label).toBe("other");
      expect((await again.load(mainRef))?.revision).toBe(2);
      await again.close();
    }
  });

  it("of another program that is only missing its line feed is ended, not cut [C49]", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    await store.append(mainRef, [userDraft("first")]);
    await store.close();
    const foreign = {
      type: "message",
      id: "abcd1234",
      parentId: null,
      timestamp: "2026-01-02T03:04:05.006Z",
      message: { role: "user", content: "theirs" },
    };
    writeFileSync(transcriptOf(root), readFileSync(transcriptOf(root), "utf8") + JSON.stringify(foreign));
    const again = createJsonlStore({ root });
    expect(await textsOf(again)).toEqual(["first", "theirs"]);
    const { records } = await again.append(mainRef, [userDraft("next")]);
    expect(records[0]).toMatchObject({ seq: 3, parentId: "abcd1234" });
    expect(await textsOf(again)).toEqual(["first", "theirs", "next"]);
    await again.close();
  });

  it("is set aside also where the folder for it was removed, and a fork is made there", async () => {
    const root = newFolder();
    const torn = `${root}/agents/main/throughline/torn`;
    const store = await storeWithSession(root);
    await store.append(mainRef, [userDraft("first")]);
    rmSync(torn, { recursive: true });
    writeFileSync(transcriptOf(root), '{"type":', { flag: "a" });
    await store.append(mainRef, [userDraft("second")]);
    expect(readdirSync(torn)).toHaveLength(1);
    rmSync(torn, { recursive: true });
    const forkRef = sessionRef({ key: "agent:main:fork" });
    await store.fork!.fork(mainRef, forkRef, { sessionId: "f1" });
    expect(await textsOf(store, forkRef)).toEqual(["first", "second"]);
    await store.close();
  });
});
