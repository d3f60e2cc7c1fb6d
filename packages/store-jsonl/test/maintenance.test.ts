import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Finding } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { mainRef, storeWithSession, transcriptOf, userDraft } from "./session-fixture.ts";
import { filesBelow, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

interface Report {
  readonly changes: readonly {
    readonly line: number;
    readonly byteOffset: number;
    readonly sizeBytes: number;
    readonly removedOffset: number;
  }[];
}

async function all(findings: AsyncIterable<Finding>): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  for await (const finding of findings) found.push(finding);
  return found;
}

async function verified(root: string): Promise<readonly string[]> {
  const store = createJsonlStore({ root, index: false, sessionsJson: false });
  const found = await all(store.maintenance!.verify({ full: true }));
  await store.close();
  return [...new Set(found.map(({ code, line }) => (line === null ? code : `${code} ${line}`)))];
}

/** Repairs, checks what every repair must keep to, and puts the copy in the place of the original. */
async function repaired(root: string): Promise<readonly Finding[]> {
  const path = transcriptOf(root);
  const original = readFileSync(path);
  const store = createJsonlStore({ root, index: false, sessionsJson: false });
  const found = await all(store.maintenance!.repair());
  await store.close();
  expect(readFileSync(path)).toEqual(original);
  const copy = `${root}/agents/main/throughline/repaired/s1.jsonl`;
  if (!existsSync(copy)) return found;
  const removed = readFileSync(`${copy}.removed`);
  const report = JSON.parse(readFileSync(`${copy}.report.json`, "utf8")) as Report;
  for (const { byteOffset, sizeBytes, removedOffset } of report.changes)
    expect(removed.subarray(removedOffset, removedOffset + sizeBytes)).toEqual(
      original.subarray(byteOffset, byteOffset + sizeBytes),
    );
  copyFileSync(copy, path);
  for (const suffix of ["", ".removed", ".report.json"]) rmSync(`${copy}${suffix}`);
  return found;
}

/** A session of four records: "one", "two", and "three" and "four" in one append. */
async function sampleSession(): Promise<string> {
  const root = newFolder();
  const store = await storeWithSession(root, { index: false, sessionsJson: false });
  for (const texts of [["one"], ["two"], ["three", "four"]])
    await store.append(
      mainRef,
      texts.map((text) => ({ ...userDraft(text), id: text })),
    );
  await store.close();
  return root;
}

async function readTexts(root: string): Promise<readonly string[]> {
  const store = createJsonlStore({ root, index: false, sessionsJson: false });
  const texts: string[] = [];
  for await (const page of store.read(mainRef))
    for (const { record } of page.records) {
      const content = (record["message"] as { content?: unknown } | undefined)?.content;
      texts.push(typeof content === "string" ? content : record.type);
    }
  await store.close();
  return texts;
}

type Edit = (bytes: Buffer, lines: readonly string[]) => Buffer | string;

const foreign = (fields: Readonly<Record<string, unknown>>): string =>
  `${JSON.stringify({ type: "message", parentId: "four", timestamp: "2026-01-02T03:04:05.006Z", message: { role: "user", content: "five" }, ...fields })}\n`;

describe("verify and repair", () => {
  it("find nothing in a sound store, and write nothing", async () => {
    const root = await sampleSession();
    expect(await verified(root)).toEqual([]);
    expect(await repaired(root)).toEqual([]);
    expect(filesBelow(root).filter((path) => path.includes("repaired"))).toEqual([]);
  });

  const damages: readonly [name: string, edit: Edit, found: readonly string[], texts: readonly string[]][] = [
    [
      "a torn tail",
      (bytes) => Buffer.concat([bytes, Buffer.from('{"type":"mess')]),
      ["TAIL_TORN 6"],
      ["one", "two", "three", "four"],
    ],
    ["half a batch", (_bytes, lines) => `${lines.slice(0, 4).join("\n")}\n`, ["BATCH_INCOMPLETE 4"], ["one", "two"]],
    [
      "a run of NULs before a record",
      (_bytes, lines) => `${lines.slice(0, 2).join("\n")}\n${"\0".repeat(40)}${lines.slice(2).join("\n")}\n`,
      ["LINE_MALFORMED 3"],
      ["one", "two", "three", "four"],
    ],
    [
      "records glued together",
      (_bytes, lines) => `${lines.slice(0, 2).join("\n")}\n${lines[2]}${lines[3]}\n${lines[4]}\n`,
      ["LINE_MALFORMED 3"],
      ["one", "two", "three", "four"],
    ],
    [
      "a record glued to the rest of one",
      (_bytes, lines) => `${lines.slice(0, 2).join("\n")}\n{"type":"mess${lines[2]}\n${lines.slice(3).join("\n")}\n`,
      ["LINE_MALFORMED 3"],
      ["one", "two", "three", "four"],
    ],
    [
      "bytes that are not UTF-8",
      (bytes, lines) => {
        const at = bytes.indexOf("two", bytes.indexOf(lines[2] ?? "") + 60);
        return Buffer.concat([bytes.subarray(0, at), Buffer.from([0xff]), bytes.subarray(at)]);
      },
      ["LINE_MALFORMED 3"],
      ["one", "\ufffdtwo", "three", "four"],
    ],
    [
      "a byte order mark",
      (bytes) => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]),
      ["BYTE_ORDER_MARK 1"],
      ["one", "two", "three", "four"],
    ],
    [
      "carriage returns in the place of line feeds",
      (_bytes, lines) => `${lines.join("\r")}\r`,
      ["TAIL_TORN 1"],
      ["one", "two", "three", "four"],
    ],
    [
      "carriage returns in the place of the last line feeds",
      (_bytes, lines) => `${lines.slice(0, 2).join("\n")}\n${lines.slice(2).join("\r")}`,
      ["TAIL_TORN 3"],
      ["one", "two", "three", "four"],
    ],
    [
      "carriage returns",
      (_bytes, lines) => `${lines.join("\r\n")}\r\n`,
      ["CARRIAGE_RETURN 1", "CARRIAGE_RETURN 2", "CARRIAGE_RETURN 3", "CARRIAGE_RETURN 4", "CARRIAGE_RETURN 5"],
      ["one", "two", "three", "four"],
    ],
    [
      "an id that occurs twice",
      (bytes) => bytes.toString() + foreign({ id: "two" }),
      ["DUPLICATE_ID 6"],
      ["one", "two", "three", "four", "five"],
    ],
    [
      "parents in a circle",
      (bytes) => bytes.toString() + foreign({ id: "x", parentId: "y" }) + foreign({ id: "y", parentId: "x" }),
      ["PARENT_CYCLE 6"],
      ["one", "two", "three", "four", "five", "five"],
    ],
    [
      "a parent that is nowhere",
      (bytes) => bytes.toString() + foreign({ id: "x", parentId: "gone" }),
      ["ORPHAN_PARENT 6"],
      ["one", "two", "three", "four", "five"],
    ],
    [
      "no header",
      (_bytes, lines) => `${lines.slice(1).join("\n")}\n`,
      ["HEADER_MISSING 1"],
      ["one", "two", "three", "four"],
    ],
    [
      "a header that is not at the beginning",
      (_bytes, lines) => `nonsense\n${lines.join("\n")}\n`,
      ["LINE_MALFORMED 1"],
      ["custom", "one", "two", "three", "four"],
    ],
    [
      "a compaction that keeps from a record that is nowhere",
      (bytes) =>
        bytes.toString() +
        foreign({ id: "c", type: "compaction", summary: "s", firstKeptEntryId: "gone", tokensBefore: 5 }),
      ["COMPACTION_DANGLING 6"],
      ["one", "two", "three", "four", "five"],
    ],
    [
      "a compaction that keeps from a record behind it",
      (bytes) =>
        bytes.toString() +
        foreign({ id: "c", type: "compaction", summary: "s", firstKeptEntryId: "x", tokensBefore: 5 }) +
        foreign({ id: "x", parentId: "c" }),
      ["COMPACTION_DANGLING 6"],
      ["one", "two", "three", "four", "five", "five"],
    ],
    [
      "a line that is nothing",
      (_bytes, lines) => `${lines.slice(0, 2).join("\n")}\nnonsense\n${lines.slice(2).join("\n")}\n`,
      ["LINE_MALFORMED 3"],
      ["one", "custom", "two", "three", "four"],
    ],
  ];
  it.each(damages)("find %s by its line, and put it right in a copy", async (_name, edit, found, texts) => {
    const root = await sampleSession();
    const bytes = readFileSync(transcriptOf(root));
    writeFileSync(transcriptOf(root), edit(bytes, bytes.toString().trimEnd().split("\n")));
    expect(await verified(root)).toEqual(expect.arrayContaining([...found]));
    expect((await repaired(root)).every((finding) => finding.repaired)).toBe(true);
    expect(await verified(root)).toEqual([]);
    expect(await readTexts(root)).toEqual(texts);
    expect(await repaired(root)).toEqual([]);
  });

  it("leave the header of an imported transcript, which is the file's header and its first record", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    const header = { type: "session", version: 3, id: "theirs", timestamp: "2026-01-02T03:04:05.006Z", cwd: "/" };
    const { id, timestamp } = header;
    const record = {
      type: "session",
      id: `header:${id}`,
      parentId: null,
      timestamp,
      sessionId: id,
      version: 3,
      cwd: "/",
    };
    await store.append(mainRef, [
      { source: JSON.stringify(header), record },
      { source: foreign({ id: "a", parentId: null }).trim() },
    ]);
    await store.close();
    expect(JSON.parse(readFileSync(transcriptOf(root), "utf8").split("\n")[0] ?? "")).toMatchObject(header);
    expect(await repaired(root)).toEqual([]);
    const glued = readFileSync(transcriptOf(root), "utf8").replace('"theirs"', '"other"');
    writeFileSync(transcriptOf(root), glued);
    expect((await repaired(root)).map(({ code }) => code)).toContain("LINE_MALFORMED");
  });

  it("keep what an earlier repair removed, whose copy took the place of the original", async () => {
    const root = await sampleSession();
    const copy = `${root}/agents/main/throughline/repaired/s1.jsonl`;
    const clean = readFileSync(transcriptOf(root), "utf8");
    for (const damage of ["first damage\n", "second damage\n", "second damage\n"]) {
      writeFileSync(transcriptOf(root), clean + damage + foreign({ id: "x", parentId: null }));
      const store = createJsonlStore({ root });
      for await (const _finding of store.maintenance?.repair() ?? []);
      await store.close();
    }
    expect(readFileSync(`${copy}.removed`, "utf8")).toContain("second damage");
    expect(readFileSync(`${copy}.removed.1`, "utf8")).toContain("first damage");
    expect(["report.json.1", "removed.2"].map((name) => existsSync(`${copy}.${name}`))).toEqual([true, false]);
  });

  it("find nothing wrong with a compaction that names itself, for it keeps nothing from before", async () => {
    const root = await sampleSession();
    const own = foreign({ id: "c", type: "compaction", summary: "s", firstKeptEntryId: "c", tokensBefore: 5 });
    writeFileSync(transcriptOf(root), readFileSync(transcriptOf(root), "utf8") + own);
    expect(await verified(root)).toEqual([]);
    expect(await repaired(root)).toEqual([]);
  });

  it("find a transcript that is gone, one that nobody has, and a log that is damaged", async () => {
    const root = await sampleSession();
    writeFileSync(transcriptOf(root, "other"), foreign({ id: "x" }));
    rmSync(transcriptOf(root));
    const log = `${root}/agents/main/throughline/entries.log`;
    writeFileSync(log, `nonsense\n${readFileSync(log, "utf8").replace('"revision":1', '"revision":2')}{"v"`);
    expect(await verified(root)).toEqual([
      "ENTRY_UNREADABLE 1",
      "CHECKSUM_MISMATCH 2",
      "TAIL_TORN 3",
      "SESSION_UNINDEXED",
    ]);
  });
});

describe("a damaged transcript", () => {
  /** Ids of the records whose lines are in the file, whole and by themselves. */
  function intactIds(damaged: Buffer, lines: readonly string[]): readonly string[] {
    const there = new Set(damaged.toString("latin1").split("\n"));
    return lines
      .slice(1)
      .filter((line) => there.has(Buffer.from(line).toString("latin1")))
      .map((line) => (JSON.parse(line) as { id: string }).id);
  }

  async function survives(root: string, damaged: Buffer, lines: readonly string[]): Promise<void> {
    const wanted = intactIds(damaged, lines);
    writeFileSync(transcriptOf(root), damaged);
    const ids = async (): Promise<readonly string[]> => {
      const store = createJsonlStore({ root, index: false, sessionsJson: false });
      const found: string[] = [];
      for await (const page of store.read(mainRef)) found.push(...page.records.map(({ id }) => id));
      await store.close();
      return found;
    };
    // A damaged envelope of ours is refused before a repair.
    const refused = (error: unknown): readonly string[] => (
      expect(error).toHaveProperty("code", "STORE_CORRUPT"),
      wanted
    );
    expect(await ids().catch(refused)).toEqual(expect.arrayContaining([...wanted]));
    await repaired(root);
    expect(await ids()).toEqual(expect.arrayContaining([...wanted]));
    expect(await repaired(root)).toEqual([]);
  }

  async function fuzzed(): Promise<{
    readonly root: string;
    readonly bytes: Buffer;
    readonly lines: readonly string[];
  }> {
    const root = newFolder();
    const store = await storeWithSession(root, { index: false, sessionsJson: false });
    for (const text of ["one", "zwei 😀", 'th"r}{ee'])
      await store.append(mainRef, [{ ...userDraft(text), id: `id-${text.length}` }], { durability: "none" });
    await store.close();
    const bytes = readFileSync(transcriptOf(root));
    return { root, bytes, lines: bytes.toString().trimEnd().split("\n") };
  }

  it("cut at any byte gives back every record that is whole", { tags: ["slow"], timeout: 60_000 }, async () => {
    const { root, bytes, lines } = await fuzzed();
    const step = testSize({ short: 17, long: 1 });
    for (let size = 0; size <= bytes.length; size += size < 20 || size > bytes.length - 20 ? 1 : step)
      await survives(root, bytes.subarray(0, size), lines);
  });

  it(
    "with bytes changed, left out or doubled anywhere gives back every record that is whole",
    { tags: ["slow"], timeout: 60_000 },
    async () => {
      const { root, bytes, lines } = await fuzzed();
      const place = fc.nat({ max: bytes.length - 1 });
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.record({ at: place, mask: fc.integer({ min: 1, max: 255 }) }), { maxLength: 4 }),
          fc.option(fc.record({ from: place, size: fc.nat({ max: 300 }), to: place, isCut: fc.boolean() })),
          async (flips, splice) => {
            const flipped = Buffer.from(bytes);
            for (const { at, mask } of flips) flipped[at] = (flipped[at] ?? 0) ^ mask;
            const part = splice === null ? Buffer.alloc(0) : flipped.subarray(splice.from, splice.from + splice.size);
            const damaged =
              splice === null
                ? flipped
                : splice.isCut
                  ? Buffer.concat([flipped.subarray(0, splice.from), flipped.subarray(splice.from + splice.size)])
                  : Buffer.concat([flipped.subarray(0, splice.to), part, flipped.subarray(splice.to)]);
            await survives(root, damaged, lines);
          },
        ),
        {
          numRuns: testSize({ short: 60, long: 600 }),
          examples: [
            // A time that becomes Infinity: a digit of `at` is an `e`.
            [[{ at: bytes.indexOf('"at":') + 7, mask: (bytes[bytes.indexOf('"at":') + 7] ?? 0) ^ 0x65 }], null],
            // The name of the header's envelope: each byte of `"_tl"`.
            [[{ at: bytes.indexOf('"_tl"'), mask: 1 }], null],
            [[{ at: bytes.indexOf('"_tl"') + 2, mask: 1 }], null],
            [[], { from: 127, size: 181, to: 0, isCut: false }],
            // What is glued to the beginning of the header makes it a record with an id.
            [[], { from: 138, size: 170, to: 53, isCut: false }],
            [[], { from: 137, size: 170, to: 53, isCut: false }],
            [[], { from: 139, size: 170, to: 53, isCut: false }],
            // The beginning of the header and the end of a record that is no UTF-8.
            [[{ at: 358, mask: 128 }], { from: 42, size: 269, to: 0, isCut: true }],
            // A record that hangs on a later one, which has lost its own parent.
            [[], { from: 379, size: 206, to: 161, isCut: false }],
          ],
        },
      );
    },
  );

  it("of nothing but opening braces is not read for ever", { tags: ["slow"], timeout: 60_000 }, async () => {
    const root = await sampleSession();
    writeFileSync(transcriptOf(root), `${'{"a":'.repeat(200_000)}\n`, { flag: "a" });
    await repaired(root);
    expect(await readTexts(root)).toEqual(["one", "two", "three", "four", "custom"]);
  });
});

describe("a verification", () => {
  it("that is aborted within a transcript says so with its code", { tags: ["slow"] }, async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    writeFileSync(transcriptOf(root), "no record\n", { flag: "a" });
    for (let count = 0; count < 4; count++) await store.append(mainRef, [userDraft("x".repeat(1_000_000))]);
    const abort = new AbortController();
    const findings = store.maintenance!.verify({ signal: abort.signal })[Symbol.asyncIterator]();
    expect((await findings.next()).done).toBe(false);
    abort.abort();
    await expect(findings.next()).rejects.toMatchObject({ code: "ABORTED" });
    await store.close();
  });
});
