import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isLongRun } from "../../../tools/test-size.ts";
import { refOf } from "./append-drafts.ts";
import { createSession, quickFolder, testFolder, textsOf } from "./test-folder.ts";

const script = fileURLToPath(new URL("append-through-failed-flushes.ts", import.meta.url));
const compiler = process.env["CC"] ?? "cc";
const ways = ["the same handle", "another handle", "another process"] as const;
/** All positions take minutes. */
const isFull = isLongRun;

interface Entry {
  readonly kind: string;
  readonly isFailed: boolean;
  readonly offset: number;
  readonly bytes: Buffer;
  readonly name: string;
}

function entriesOf(journal: Buffer): Entry[] {
  const entries: Entry[] = [];
  for (let at = 0; at < journal.length;) {
    const end = journal.indexOf(10, at);
    const [kind = "", result, offset, length, path = ""] = journal.toString("utf8", at, end).split(" ");
    const bytes = journal.subarray(end + 1, end + 1 + Number(length));
    entries.push({ kind, isFailed: result !== "0", offset: Number(offset), bytes, name: basename(path) });
    at = end + 1 + bytes.length;
  }
  return entries;
}

/** What a disk holds on which a failed flush gives up for ever what was written before it, as Linux does. */
class Disk {
  readonly files = new Map<string, Buffer>();
  readonly #unflushed = new Map<string, Entry[]>();

  constructor(files: ReadonlyMap<string, Buffer>) {
    for (const [name, bytes] of files) this.files.set(name, Buffer.from(bytes));
  }

  take(entry: Entry): void {
    const { kind, name, isFailed } = entry;
    const waiting = this.#unflushed.get(name) ?? [];
    if (kind === "u") {
      this.files.delete(name);
      this.#unflushed.delete(name);
    } else if (kind !== "f") this.#unflushed.set(name, [...waiting, entry]);
    else {
      if (!isFailed) for (const each of waiting) this.#write(each);
      this.#unflushed.delete(name);
    }
  }

  #write({ kind, name, offset, bytes }: Entry): void {
    const before = this.files.get(name) ?? Buffer.alloc(0);
    if (kind === "t") {
      const cut = Buffer.alloc(offset);
      before.copy(cut);
      this.files.set(name, cut);
      return;
    }
    const after = Buffer.alloc(Math.max(before.length, offset + bytes.length));
    before.copy(after);
    bytes.copy(after, offset);
    this.files.set(name, after);
  }
}

/** Which appends a store has that is opened on what the disk held when the power was cut. */
async function survivors(disk: Disk, folder: string): Promise<readonly string[]> {
  mkdirSync(folder);
  for (const [name, bytes] of disk.files)
    if (/^store\.db(-wal)?$/.test(name)) writeFileSync(join(folder, name), bytes, { mode: 0o600 });
  await using store: SessionStore = createSqliteStore({
    path: join(folder, "store.db"),
    recover: false,
    searchFill: "on-demand",
  });
  return (await textsOf(store, refOf("a"))).map((text) => String(text).split(" ")[0] ?? "");
}

describe.skipIf(process.platform !== "linux" || spawnSync(compiler, ["--version"]).status !== 0)(
  "a flush that fails (Linux with a C compiler only)",
  () => {
    let library = "";
    beforeAll(() => {
      library = join(mkdtempSync(join(tmpdir(), "throughline-journal-")), "journal-writes.so");
      const source = fileURLToPath(new URL("journal-writes.c", import.meta.url));
      expect(spawnSync(compiler, ["-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]).status).toBe(0);
    });

    afterAll(() => rmSync(dirname(library), { recursive: true }));

    /** Runs the appends with failing flushes; gives how many failed. Checks each acknowledgement against a power cut behind it. */
    async function run(way: string, fail: string, from: number, until: number): Promise<number> {
      const folder = testFolder(quickFolder());
      const path = join(folder, "store.db");
      {
        await using store = createSqliteStore({ path });
        await createSession(store, "a");
      }
      const before = new Map([["store.db", readFileSync(path)]]);
      const journal = join(testFolder(), "journal");
      const env = { LD_PRELOAD: library, JW_FOLDER: folder, JW_JOURNAL: journal };
      const fault = { JW_FAIL: fail, JW_FROM: String(from), JW_UNTIL: String(until) };
      const child = spawnSync(process.execPath, ["--conditions=@throughline/source", script, path, way], {
        env: { ...process.env, ...env, ...fault },
        encoding: "utf8",
        timeout: 60_000,
      });
      expect([child.signal, child.stderr], `${way}, ${fail} ${from} to ${until}`).toEqual(["SIGKILL", ""]);
      const disk = new Disk(before);
      const acknowledged: string[] = [];
      let failures = 0;
      for (const entry of entriesOf(readFileSync(journal))) {
        if (entry.kind === "f" && entry.isFailed) failures += 1;
        if (entry.name !== "acknowledged") {
          disk.take(entry);
          continue;
        }
        acknowledged.push(`n${entry.bytes.toString().trim()}`);
        // Between two failures nothing is new.
        if (failures === 0 && acknowledged.length > 1) continue;
        const found = await survivors(disk, join(folder, `cut-${acknowledged.length}`));
        const lost = acknowledged.filter((each) => !found.includes(each));
        expect({ way, fail, from, until, lost, twice: found.length - new Set(found).size }).toEqual({
          way,
          fail,
          from,
          until,
          lost: [],
          twice: 0,
        });
      }
      expect(acknowledged.length).toBe(6);
      // Without a power cut too: each once.
      await using store = createSqliteStore({ path, recover: false, searchFill: "on-demand" });
      const texts = (await textsOf(store, refOf("a"))).map((text) => String(text).split(" ")[0]);
      expect(texts).toEqual(Array.from({ length: 9 }, (_, index) => `n${index}`));
      return failures;
    }

    it.each(ways)(
      "is made good by whoever repeats the append with its key, through %s",
      { timeout: 300_000 },
      async (way) => {
        let failures = 0;
        const steps = isFull ? 1 : 3;
        const offset = ways.indexOf(way);
        for (const fail of ["-wal", ".db"])
          for (let from = 1 + (isFull ? 0 : offset); from <= (fail === "-wal" ? 12 : 4); from += steps)
            for (const length of isFull ? [0, 1, 3] : [from % 2]) failures += await run(way, fail, from, from + length);
        expect(failures).toBeGreaterThan(2);
      },
    );
  },
);
