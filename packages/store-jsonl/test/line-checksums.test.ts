import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sessionRef, type Finding, type SessionEvent, type SessionStore } from "@throughline/core";
import { attachEnvelope, detachEnvelope } from "@throughline/openclaw-format/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { mainRef, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const other = sessionRef({ key: "agent:main:other" });

/** Two sessions, each with an append of one record and one of two. The first has an open turn and an entry. */
async function twoSessions(): Promise<string> {
  const root = newFolder();
  const store = createJsonlStore({ root, sessionsJson: false });
  for (const [ref, sessionId] of [
    [mainRef, "s1"],
    [other, "s2"],
  ] as const) {
    await store.save(ref, { sessionId }, { ifRevision: null });
    await store.append(ref, [userDraft("one")], { entry: { label: "l" } });
    await store.append(ref, [userDraft("two"), userDraft("three")]);
  }
  await store.close();
  return root;
}

function opened(root: string): { readonly store: SessionStore; readonly findings: Finding[] } {
  const findings: Finding[] = [];
  const onEvent = (event: SessionEvent): void => void (event.name === "finding" && findings.push(event.finding));
  return { store: createJsonlStore({ root, sessionsJson: false, onEvent }), findings };
}

function edit(path: string, change: (text: string) => string): void {
  const before = readFileSync(path, "latin1");
  const after = change(before);
  if (after === before) throw new Error("nothing was changed");
  writeFileSync(path, after, "latin1");
}

async function all<T>(values: AsyncIterable<T> | undefined): Promise<readonly T[]> {
  return Array.fromAsync(values ?? []);
}

describe("a transcript line whose envelope is damaged", () => {
  const damages: readonly [name: string, line: number, change: (line: string) => string][] = [
    ["its seq", 3, (line) => line.replace('"seq":2', '"seq":3')],
    ["its place in the append", 3, (line) => line.replace('"batch":[1,2]', '"batch":[1,3]')],
    ["the patch of the entry", 2, (line) => line.replace('"label":"l"', '"label":"m"')],
    ["its own checksum", 4, (line) => line.replace(/\d\}\}$/, (end) => `${(Number(end[0]) + 1) % 10}}}`)],
    ["its name", 3, (line) => line.replace('"_tl":', '"_ul":')],
    ["its first member", 3, (line) => line.replace('{"seq":', '{"req":')],
    ["its JSON", 3, (line) => line.replace('"batch":[1', '"batch":{1')],
    ["the line feed before it", 3, (line) => line],
  ];
  it.each(damages)(
    "in %s is refused with file and line, and repaired: the other session is read",
    async (name, at, change) => {
      const root = await twoSessions();
      const path = transcriptOf(root, "s1");
      const isLineFeed = name.startsWith("the line feed");
      edit(path, (text) => {
        const lines = text.split("\n");
        lines[at - 1] = change(lines[at - 1] ?? "");
        return isLineFeed
          ? lines.join("\n").replace(/\}\n(?=\{"type":"message".*"seq":2)/, "}\u000b")
          : lines.join("\n");
      });
      const { store, findings } = opened(root);
      const line = isLineFeed ? 2 : at;
      const refused = { code: "STORE_CORRUPT", details: { path, line } };
      await expect(store.load(mainRef)).rejects.toMatchObject(refused);
      for (const payload of ["record", "source", "head"] as const)
        await expect(all(store.read(mainRef, { payload }))).rejects.toMatchObject(refused);
      await expect(store.append(mainRef, [userDraft("four")])).rejects.toMatchObject(refused);
      await expect(store.maintenance?.backup(join(root, "backup"))).rejects.toMatchObject(refused);
      expect(existsSync(join(root, "backup"))).toBe(false);
      expect((await store.list()).sessions.map(({ sessionId }) => sessionId)).toEqual(["s2"]);
      expect(findings).toContainEqual(expect.objectContaining({ code: "STORE_DAMAGED", path, line }));
      expect(await textsOf(store, other)).toEqual(["one", "two", "three"]);
      const verified = await all(store.maintenance?.verify());
      expect(verified.map((finding) => finding.line)).toContain(line);
      expect((await all(store.maintenance?.repair())).every(({ repaired }) => repaired)).toBe(true);
      await store.close();
      copyFileSync(join(root, "agents/main/throughline/repaired/s1.jsonl"), path);
      const again = opened(root);
      expect(await textsOf(again.store)).toEqual(["one", "two", "three"]);
      expect((await again.store.append(mainRef, [userDraft("four")])).records[0]?.seq).toBe(4);
      expect(again.findings).toEqual([]);
      await again.store.close();
    },
  );

  it("is archived and purged like any other", async () => {
    const root = await twoSessions();
    edit(transcriptOf(root, "s1"), (text) => text.replace('"seq":2', '"seq":3'));
    const { store } = opened(root);
    await store.remove(mainRef);
    await store.remove({ ...mainRef, archiveId: "s1" }, { purge: true });
    expect((await store.list({ state: "any" })).sessions.map(({ sessionId }) => sessionId)).toEqual(["s2"]);
    expect(existsSync(transcriptOf(root, "s1"))).toBe(false);
    await store.close();
  });

  it("is read where its text is damaged and its envelope is not, also without its index", async () => {
    const root = await twoSessions();
    const path = transcriptOf(root, "s1");
    edit(path, (text) =>
      text.replace('"content":"three"', '"content":"thr\u00e5e"').replace('"content":"one"', '"content"="one"'),
    );
    rmSync(join(root, "agents/main/throughline/index.db"));
    const { store, findings } = opened(root);
    expect(await store.load(mainRef)).toMatchObject({ revision: 2, entry: { label: "l" }, head: { lastSeq: 3 } });
    expect(findings.map(({ code, line }) => [code, line])).toEqual(
      expect.arrayContaining([
        ["LINE_MALFORMED", 2],
        ["CHECKSUM_MISMATCH", 4],
      ]),
    );
    expect((await all(store.read(mainRef))).flatMap(({ records }) => records.map(({ seq }) => seq))).toEqual([1, 2, 3]);
    await expect(all(store.read(mainRef, { payload: "source" }))).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    await expect(store.maintenance?.backup(join(root, "backup"))).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      details: { path, line: 2 },
    });
    await store.close();
  });

  it("is read where a person has edited its text, with a finding", async () => {
    const root = await twoSessions();
    edit(transcriptOf(root, "s1"), (text) => text.replace('"content":"two"', '"content":"tvo"'));
    const { store, findings } = opened(root);
    expect(await textsOf(store)).toEqual(["one", "tvo", "three"]);
    expect(findings).toMatchObject([{ code: "CHECKSUM_MISMATCH", line: 3 }]);
    await store.close();
  });
});

describe("a damaged header", () => {
  it.each([
    ["its text", (text: string) => text.replace('"cwd":"', '"cwe":"')],
    ["its JSON", (text: string) => text.replace('"version":3,', '"version":3<')],
    ["its UTF-8", (text: string) => text.replace('"cwd":"', '"c\u00f7d":"')],
    ["its envelope", (text: string) => text.replace('"_tl":{', '"_tl":[')],
    ["the name of its envelope", (text: string) => text.replace('"_tl":{', '"_ul":{')],
  ])("by %s changes no record's seq, and is reported and repaired", async (_name, change) => {
    const root = await twoSessions();
    const path = transcriptOf(root, "s1");
    edit(path, change);
    const { store, findings } = opened(root);
    expect((await all(store.read(mainRef))).flatMap(({ records }) => records.map(({ seq }) => seq))).toEqual([1, 2, 3]);
    expect(findings).toMatchObject([{ code: "CHECKSUM_MISMATCH", line: 1 }]);
    await expect(store.maintenance?.backup(join(root, "backup"))).rejects.toMatchObject({ details: { path, line: 1 } });
    await all(store.maintenance?.repair());
    await store.close();
    copyFileSync(join(root, "agents/main/throughline/repaired/s1.jsonl"), path);
    const again = opened(root);
    expect(await textsOf(again.store)).toEqual(["one", "two", "three"]);
    expect(await all(again.store.maintenance?.verify())).toEqual([]);
    await again.store.maintenance?.backup(join(root, "backup"));
    await again.store.close();
  });
});

describe("lines without the checksum", () => {
  it("are read and written behind: those of earlier versions", async () => {
    const root = await twoSessions();
    edit(transcriptOf(root, "s1"), (text) =>
      text
        .split("\n")
        .map((line) => {
          const { text: record, envelope } = detachEnvelope(line);
          if (envelope === null) return line;
          const { sum: _sum, ...members } = envelope;
          return attachEnvelope(record, members);
        })
        .join("\n"),
    );
    const { store, findings } = opened(root);
    expect(await textsOf(store)).toEqual(["one", "two", "three"]);
    await store.append(mainRef, [userDraft("four")]);
    expect(await store.load(mainRef)).toMatchObject({ entry: { label: "l" }, messageCount: 4 });
    expect(findings).toEqual([]);
    expect(await all(store.maintenance?.verify())).toEqual([]);
    await store.maintenance?.backup(join(root, "backup"));
    await store.close();
  });
});

describe("a line of the entries log that does not fit its checksum", () => {
  it.each([
    ["its entry", (line: string) => line.replace('"label":"l"', '"label":"m"')],
    ["its session id", (line: string) => line.replace('"sessionId":"s1"', '"sessionId":"q1"')],
    ["its key", (line: string) => line.replace("agent:main:main", "agent:main:mail")],
    ["its key, which is another's now", (line: string) => line.replace("agent:main:main", "agent:main:other")],
    ["its session id, which is another's now", (line: string) => line.replace('"sessionId":"s1"', '"sessionId":"s2"')],
    ["its version", (line: string) => line.replace('"v":1', '"v":3')],
    ["its JSON", (line: string) => line.replace('"entry":{', '"entry":[')],
  ])("in %s makes its session unreadable until a repair, and no other", async (_name, change) => {
    const root = await twoSessions();
    const path = join(root, "agents/main/throughline/entries.log");
    rmSync(join(root, "agents/main/throughline/index.db"));
    const lines = readFileSync(path, "utf8").split("\n");
    const at = lines.findLastIndex((line) => line.includes('"sessionId":"s1"'));
    lines[at] = change(lines[at] ?? "");
    writeFileSync(path, lines.join("\n"));
    const { store, findings } = opened(root);
    await expect(store.load(mainRef)).rejects.toMatchObject({ code: "STORE_CORRUPT", details: { line: at + 1 } });
    expect((await store.list()).sessions.map(({ sessionId }) => sessionId)).toEqual(["s2"]);
    expect(findings).toContainEqual(expect.objectContaining({ path, line: at + 1 }));
    await expect(store.maintenance?.backup(join(root, "backup"))).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      details: { path, line: at + 1 },
    });
    await store.close();
    // It stays so for whoever comes next, and with an index.
    const next = opened(root);
    await expect(next.store.load(mainRef)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    expect(await textsOf(next.store, other)).toEqual(["one", "two", "three"]);
    expect((await all(next.store.maintenance?.verify())).map(({ line }) => line)).toContain(at + 1);
    const found = await all(next.store.maintenance?.repair());
    expect(found.map(({ key, repaired }) => [key, repaired])).toContainEqual(["agent:main:main", true]);
    expect(await next.store.load(mainRef)).toMatchObject({ entry: { sendPolicy: "deny" }, messageCount: 3 });
    await next.store.maintenance?.backup(join(root, "backup"));
    expect(await all(next.store.maintenance?.verify())).toEqual([]);
    // The copy of the log as it was goes with a purge.
    await next.store.remove(mainRef, { purge: true });
    expect(readdirSync(join(root, "agents/main/throughline/torn"))).toEqual([]);
    await next.store.close();
  });

  it("is refused by a backup where it was the only one about its session, and names another one now", async () => {
    const root = await twoSessions();
    const third = sessionRef({ key: "agent:main:third" });
    const before = opened(root).store;
    await before.save(third, { sessionId: "s3" }, { ifRevision: null });
    await before.save(other, { sessionId: "s2", label: "later" }, { ifRevision: 2 });
    await before.close();
    edit(join(root, "agents/main/throughline/entries.log"), (text) =>
      text.replace("agent:main:third", "agent:main:other"),
    );
    const { store } = opened(root);
    await expect(store.maintenance?.backup(join(root, "backup"))).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    await all(store.maintenance?.repair());
    await store.maintenance?.backup(join(root, "backup"));
    await store.close();
  });

  it("gives a session that it archived no key back that another has since", async () => {
    const root = await twoSessions();
    const before = opened(root).store;
    await before.remove(mainRef);
    await before.save(mainRef, { sessionId: "s3" }, { ifRevision: null });
    await before.append(mainRef, [userDraft("new")]);
    await before.close();
    rmSync(join(root, "agents/main/throughline/index.db"));
    edit(join(root, "agents/main/throughline/entries.log"), (text) =>
      text.replace(/("op":"archive".*)"label":"l"/, '$1"label":"m"'),
    );
    const { store } = opened(root);
    expect(await store.load(mainRef)).toMatchObject({ sessionId: "s3" });
    expect(await textsOf(store)).toEqual(["new"]);
    await expect(store.load({ ...mainRef, archiveId: "s1" })).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    await all(store.maintenance?.repair());
    expect(await textsOf(store, { ...mainRef, archiveId: "s1" })).toEqual(["one", "two", "three"]);
    await store.close();
  });

  it.each([
    ["in the middle", /\n(?=\{)/],
    ["at the end", /\n$/],
  ])("is read where only the line feed behind it is another byte, %s", async (_name, lineFeed) => {
    const root = await twoSessions();
    rmSync(join(root, "agents/main/throughline/index.db"));
    edit(join(root, "agents/main/throughline/entries.log"), (text) => text.replace(lineFeed, "\u000b"));
    const { store, findings } = opened(root);
    expect(await store.load(mainRef)).toMatchObject({ revision: 2, entry: { label: "l" } });
    await store.save(other, { sessionId: "s2", label: "later" }, { ifRevision: 2 });
    expect((await store.list()).sessions).toHaveLength(2);
    expect(findings).toEqual([]);
    await store.close();
    const again = opened(root);
    expect((await again.store.load(other))?.entry.label).toBe("later");
    await again.store.close();
  });
});

describe("a tombstone", () => {
  it("of an earlier version, which left the checksum of the line before, is read; one of this version must fit it", async () => {
    const root = await twoSessions();
    const path = transcriptOf(root, "s1");
    const first = opened(root).store;
    const [{ records } = { records: [] }] = await all(first.read(mainRef));
    await first.redact(mainRef, [records[1]?.id ?? ""], { reason: "asked" });
    await first.close();
    edit(path, (text) => text.replace(/("seq":2,.*)"erased":true,(.*)"sum":\d+/, '$1$2"sum":7'));
    const earlier = opened(root).store;
    expect((await earlier.load(mainRef))?.head.lastSeq).toBe(3);
    await earlier.maintenance?.backup(join(root, "backup"));
    await earlier.close();
    edit(path, (text) => text.replace('"sum":7}', '"erased":true,"sum":7}'));
    const later = opened(root).store;
    await expect(later.load(mainRef)).rejects.toMatchObject({ code: "STORE_CORRUPT", details: { line: 3 } });
    await later.close();
  });
});
