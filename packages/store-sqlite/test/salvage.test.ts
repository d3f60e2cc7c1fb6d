import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import type { Finding, PayloadCodec, SessionStore } from "@throughline/core";
import { createXorCodec } from "@throughline/store-conformance";
import { createSqliteStore } from "@throughline/store-sqlite";
import { beforeAll, describe, expect, it } from "vitest";
import { say } from "./append-drafts.ts";
import { createSession, quickFolder, testFolder, textsOf } from "./test-folder.ts";

const pageBytes = 8192;
const records = 1026;
const names = ["a", "b", "c", "d"];

const codec = createXorCodec();

/** What a record says: short, in overflow pages, or as a payload of its own. */
function textOf(name: string, index: number): string {
  const size = index % 100 === 99 ? 300_000 : index % 10 === 9 ? 20_000 : 200;
  return `${name}${index} ${"lorem ".repeat(size / 6)}`;
}

function open(path: string, codec?: PayloadCodec): SessionStore {
  return createSqliteStore({
    path,
    recover: false,
    create: false,
    searchFill: "on-demand",
    ...(codec === undefined ? {} : { codec }),
  });
}

/** A closed store of 1,026 records in four sessions and a fork. */
async function filled(path: string, codec?: PayloadCodec): Promise<Buffer> {
  await using store = createSqliteStore({
    path,
    defaultDurability: "process",
    ...(codec === undefined ? {} : { codec, searchFill: "on-demand" }),
  });
  const refs = [];
  for (const name of names) refs.push(await createSession(store, name));
  for (let index = 0; index < records; index += 2)
    for (const each of [index, index + 1]) {
      const at = each % names.length;
      await store.append(refs[at] ?? expect.fail(), [say(textOf(names[at] ?? "", each))]);
    }
  await Array.fromAsync(store.search?.fill?.() ?? []);
  await store.close();
  return readFileSync(path);
}

interface Repaired {
  readonly findings: readonly Finding[];
  /** Where the copy is; null where none was written. */
  readonly path: string | null;
  readonly recovered: number;
}

/** Repairs a file, checks that it is left as it is and that what is told of the copy is what is in it. */
async function repaired(path: string, codec?: PayloadCodec): Promise<Repaired> {
  const before = filesIn(path);
  const findings: Finding[] = [];
  {
    await using store = open(path, codec);
    for await (const finding of store.maintenance?.repair() ?? []) findings.push(finding);
  }
  const last = findings.at(-1) ?? expect.fail("nothing was told");
  const copy = last.repaired ? last.path : null;
  const after = filesIn(path);
  expect([...after.keys()].filter((name) => !before.has(name))).toEqual(copy === null ? [] : [copy]);
  // SQLite deletes a log that nobody needs; the database is another matter.
  expect(after.get(path)).toBe(before.get(path));
  if (copy === null) {
    expect(last.message).toBe(`No record of ${path} could be read; nothing was written.`);
    return { findings, path: null, recovered: 0 };
  }
  await using whole = open(copy, codec);
  const wrong: Finding[] = [];
  for await (const finding of whole.maintenance?.verify({ full: true }) ?? []) wrong.push(finding);
  expect(wrong).toEqual([]);
  let recovered = 0;
  const { sessions } = await whole.list({ state: "any" });
  for (const { ref } of sessions) {
    const texts = (await textsOf(whole, ref)).filter((text) => typeof text === "string");
    for (const text of texts) {
      const [, name, index] = /^(\w)(\d+) /.exec(text) ?? [];
      expect(text === textOf(name ?? "", Number(index)), `${ref.key} has ${text.slice(0, 20)}`).toBe(true);
    }
    recovered += texts.length;
  }
  expect(last.message).toMatch(
    new RegExp(`^${recovered.toLocaleString("en-US")} (of [\\d,]+ )?records recovered into ${copy}\\.$`),
  );
  return { findings, path: copy, recovered };
}

/** The files beside a store, side files left out, by what is in them. */
function filesIn(path: string): ReadonlyMap<string, string> {
  const hash = (file: string): string => createHash("sha256").update(readFileSync(file)).digest("hex");
  const folder = dirname(path);
  const kept = readdirSync(folder).filter((name) => !/-(wal|shm)$/.test(name));
  return new Map(kept.map((name) => [join(folder, name), hash(join(folder, name))]));
}

function rootOf(bytes: Buffer, folder: string, table: string): number {
  const path = join(folder, "look.db");
  writeFileSync(path, bytes);
  const database = new Database(path);
  const page = database
    .prepare<[string], number>("SELECT rootpage FROM sqlite_schema WHERE name = ?")
    .pluck()
    .get(table);
  database.close();
  for (const side of ["", "-wal", "-shm"]) rmSync(`${path}${side}`, { force: true });
  return page ?? expect.fail();
}

function garbage(page: number): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < pageBytes; at += 32) parts.push(createHash("sha256").update(`${page} ${at}`).digest());
  return Buffer.concat(parts);
}

describe("a store SQLite does not read", { timeout: 120_000 }, () => {
  let bytes: Buffer = Buffer.alloc(0);
  beforeAll(async () => {
    bytes = await filled(join(testFolder(quickFolder()), "store.db"));
  });

  function written(change: (copy: Buffer, folder: string) => Buffer): string {
    const folder = testFolder(quickFolder());
    const path = join(folder, "store.db");
    writeFileSync(path, change(Buffer.from(bytes), folder), { mode: 0o600 });
    return path;
  }

  function withPage(page: number, content: Buffer): (copy: Buffer) => Buffer {
    return (copy) => (content.copy(copy, (page - 1) * pageBytes), copy);
  }

  it.each([
    ["cut by 5 %", (copy: Buffer) => copy.subarray(0, Math.floor(copy.length * 0.95)), 900],
    [
      "cut by 5 % between two pages",
      (copy: Buffer) => copy.subarray(0, Math.floor((copy.length * 0.95) / pageBytes) * pageBytes),
      900,
    ],
    ["cut to half of it", (copy: Buffer) => copy.subarray(0, Math.floor(copy.length / 2)), 400],
    ["without its first page", withPage(1, Buffer.alloc(pageBytes)), records],
    ["with garbage as its first page", withPage(1, garbage(1)), records],
    [
      "with a damaged list of free pages",
      (copy: Buffer) => (copy.writeUInt32BE(2, 32), copy.writeUInt32BE(7, 36), copy),
      records,
    ],
    [
      "with garbage as the root of its records",
      (copy: Buffer, folder: string) => withPage(rootOf(copy, folder, "store_records"), garbage(2))(copy),
      records,
    ],
    [
      "with zeros as the root of its records",
      (copy: Buffer, folder: string) => withPage(rootOf(copy, folder, "store_records"), Buffer.alloc(pageBytes))(copy),
      records,
    ],
    [
      "with ten pages in its middle written over",
      (copy: Buffer) => (
        Buffer.concat(Array.from({ length: 10 }, (_, page) => garbage(page))).copy(copy, 300 * pageBytes),
        copy
      ),
      900,
    ],
  ] as const)(
    "%s is repaired into a copy with what its pages hold",
    { tags: ["slow"] },
    async (_what, change, least) => {
      const { recovered, findings } = await repaired(written(change));
      expect(recovered).toBeGreaterThanOrEqual(least);
      // A cut through a payload takes its record, and nothing more.
      expect(recovered).toBeLessThanOrEqual(records);
      expect(findings.at(-1)?.message).toContain(` of ${records.toLocaleString("en-US")} records recovered`);
      expect(findings.filter(({ code }) => code === "RECORD_MISSING").length > 0).toBe(recovered < records);
    },
  );

  it("says that nothing can be read of it, and writes nothing", { tags: ["slow"] }, async () => {
    const path = written((copy) => Buffer.concat([copy.subarray(0, pageBytes), Buffer.alloc(copy.length - pageBytes)]));
    expect(await repaired(path)).toMatchObject({ path: null });
    const foreign = join(testFolder(), "foreign.db");
    const database = new Database(foreign);
    database.exec("CREATE TABLE notes (note TEXT, at INTEGER); INSERT INTO notes VALUES ('hello', 1)");
    database.close();
    await expect(repaired(foreign)).rejects.toMatchObject({ code: "STORE_FOREIGN" });
    expect(readdirSync(dirname(foreign))).toEqual(["foreign.db"]);
  });

  it("gives sessions whose rows are lost a key that says so", { tags: ["slow"] }, async () => {
    const path = written((copy, folder) => withPage(rootOf(copy, folder, "store_sessions"), garbage(3))(copy));
    const { path: copy, recovered, findings } = await repaired(path);
    expect(recovered).toBe(records);
    expect(findings.at(-1)?.message).toContain(`1,026 records recovered into`);
    await using store = open(copy ?? "");
    const { sessions } = await store.list({ sort: "key" });
    expect(sessions.map(({ ref }) => ref.key)).toEqual([1, 2, 3, 4].map((number) => `agent:main:recovered-${number}`));
    expect(sessions.map(({ messageCount }) => messageCount)).toEqual([257, 257, 256, 256]);
    for (const { ref, head } of sessions) {
      const { records: added } = await store.append(ref, [say("goes on")]);
      expect(added[0]?.parentId).toBe(head.headId);
    }
  });

  it("under a codec is read with it, and with nothing else", { tags: ["slow"] }, async () => {
    const path = join(testFolder(quickFolder()), "store.db");
    await filled(path, codec);
    truncateSync(path, Math.floor(readFileSync(path).length * 0.95));
    expect(await repaired(path)).toMatchObject({ path: null });
    expect((await repaired(path, codec)).recovered).toBeGreaterThan(800);
  });

  it("keeps redacted and purged content away", { tags: ["slow"] }, async () => {
    const path = join(testFolder(quickFolder()), "store.db");
    {
      await using store = createSqliteStore({ path });
      const [kept, gone] = [await createSession(store, "a"), await createSession(store, "b")];
      for (let each = 0; each < 200; each++) {
        await store.append(kept, [say(`a${each} `, { id: `k${each}` })]);
        await store.append(gone, [say(`zqpurged ${each}`)]);
      }
      await store.append(kept, [say("zqredacted", { id: "secret" })]);
      await store.redact(kept, ["secret"], { reason: "test" });
      await store.remove(gone, { purge: true });
    }
    const whole = readFileSync(path);
    withPage(1, Buffer.alloc(pageBytes))(whole);
    writeFileSync(path, whole);
    const found: Finding[] = [];
    {
      await using store = open(path);
      for await (const finding of store.maintenance?.repair() ?? []) found.push(finding);
    }
    const copy = found.at(-1)?.path ?? "";
    expect(found.at(-1)?.message).toContain("201 of 201 records recovered");
    expect(readFileSync(copy).includes("zqpurged") || readFileSync(copy).includes("zqredacted")).toBe(false);
    await using store = open(copy);
    expect((await store.list({ state: "any" })).sessions.map(({ ref }) => ref.key)).toEqual(["agent:main:a"]);
  });

  it("is repaired from its log alone, also from what lies behind damage in it", { tags: ["slow"] }, async () => {
    const folder = testFolder();
    const path = join(folder, "store.db");
    const script = fileURLToPath(new URL("./append-then-die.ts", import.meta.url));
    spawnSync(process.execPath, ["--conditions=@throughline/source", script, path, "60"]);
    const frameBytes = pageBytes + 24;
    const log = readFileSync(`${path}-wal`);
    const frames = Math.floor((log.length - 32) / frameBytes);
    const texts = async (file: string): Promise<number> => {
      await using store = open(file);
      const [session] = (await store.list()).sessions;
      return (await textsOf(store, session?.ref ?? expect.fail())).filter((text) => typeof text === "string").length;
    };
    const at = join(testFolder(), "store.db");
    const damaged = Buffer.from(log);
    damaged.fill(
      0xaa,
      32 + Math.floor(frames / 2) * frameBytes + 3000,
      32 + Math.floor(frames / 2) * frameBytes + 3100,
    );
    writeFileSync(`${at}-wal`, damaged);
    const found: Finding[] = [];
    {
      await using store = open(at);
      for await (const finding of store.maintenance?.repair() ?? []) found.push(finding);
    }
    expect(found.at(-1)).toMatchObject({
      repaired: true,
      message: expect.stringMatching(/^60 of 60 records recovered/),
    });
    expect(await texts(found.at(-1)?.path ?? "")).toBe(60);
    expect(existsSync(at)).toBe(false);
  });
});
