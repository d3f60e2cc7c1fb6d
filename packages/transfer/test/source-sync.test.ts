import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { redactRecords, sessionRef } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { Home, idOf, line } from "./synced-home.ts";

describe("a second sync", () => {
  it("skips files that are as they were, takes one that grew, and one that is new", async () => {
    using home = new Home();
    for (const at of [1, 2, 3]) home.write(at);
    expect((await home.pass()).states).toEqual(["imported", "imported", "imported"]);
    expect(await home.pass()).toMatchObject({ states: [], unchanged: 3 });
    appendFileSync(home.path(2), line(idOf(2), 2, "more"));
    home.write(4);
    expect(await home.pass()).toMatchObject({ states: ["grown", "imported"], unchanged: 2 });
    expect(await home.texts()).toEqual(["more", "words 1", "words 2", "words 3", "words 4"]);
  });

  it("looks again at a file that was written within the tick of the look", async () => {
    using home = new Home();
    home.nowMs = Date.now();
    const path = home.write(1, "one");
    expect((await home.pass()).states).toEqual(["imported"]);
    // The same size, and times that the file system cannot tell apart.
    const { atimeMs, mtimeMs } = statSync(path);
    writeFileSync(path, readFileSync(path, "utf8").replace("one", "two"));
    utimesSync(path, atimeMs / 1000, mtimeMs / 1000);
    expect((await home.pass()).states).toEqual(["refused"]);
  });

  it("looks again at files when the clock is set back", async () => {
    using home = new Home();
    home.write(1);
    await home.pass();
    home.nowMs -= 24 * 60 * 60 * 1000;
    appendFileSync(home.path(1), line(idOf(1), 2, "more"));
    expect((await home.pass()).states).toEqual(["grown"]);
    expect((await home.pass()).states).toEqual(["unchanged"]);
  });

  it.each([
    ["lost", (path: string) => rmSync(path)],
    ["cut off", (path: string) => writeFileSync(path, readFileSync(path, "utf8").slice(0, -20))],
    ["no JSON", (path: string) => writeFileSync(path, "\u0000\u0001 nothing")],
    [
      "of another form",
      (path: string) => writeFileSync(path, '{"v":1,"identity":"one","witness":7}\n{"folder":3}\n[]\n'),
    ],
  ])("with a memory that is %s adds nothing and misses nothing", async (_what, damage) => {
    using home = new Home();
    for (const at of [1, 2]) home.write(at);
    await home.pass();
    damage(home.memory);
    appendFileSync(home.path(2), line(idOf(2), 2, "more"));
    const { sources } = await home.pass();
    expect(sources.flatMap(({ state, error }) => (state === "grown" || error !== null ? [state] : []))).toEqual([
      "grown",
    ]);
    expect(await home.texts()).toEqual(["more", "words 1", "words 2"]);
    expect(statSync(home.memory).mode & 0o777).toBe(0o600);
  });

  it("does not trust its memory when the store is a new one, or an older one, in the same place", async () => {
    using home = new Home();
    for (const at of [1, 2]) home.write(at);
    await home.pass();
    await using other = createSqliteStore({ path: home.folder.at("other.db") });
    const anew = await home.pass({ openStore: () => Promise.resolve(other) });
    expect(anew.states).toEqual(["imported", "imported"]);
  });

  it("does not trust its memory after a backup was restored, also when it only looked at files since", async () => {
    using home = new Home();
    for (const at of [1, 2]) home.write(at);
    await home.pass();
    const backup = home.folder.at("backup.db");
    await home.store.maintenance?.backup?.(backup);
    appendFileSync(home.path(2), line(idOf(2), 2, "more"));
    await home.pass();
    // Another time of the same bytes.
    utimesSync(home.path(1), 1_700_000_000, 1_700_000_000);
    expect((await home.pass()).states).toEqual(["unchanged"]);
    await using restored = createSqliteStore({ path: backup });
    const { states } = await home.pass({ openStore: () => Promise.resolve(restored) });
    expect(states.toSorted()).toEqual(["grown", "unchanged"]);
  });

  it("reads again when the settings differ", async () => {
    using home = new Home();
    home.write(1);
    await home.pass({ excludes: ["/srv/app"], identity: "excluded" });
    expect(await home.texts()).toEqual([]);
    expect((await home.pass()).states).toEqual(["imported"]);
  });

  it("tells once that the home cannot be written, and imports all the same", async () => {
    using home = new Home();
    home.write(1);
    const memoryPath = join(home.write(2), "below-a-file", "memory.jsonl");
    await using sync = home.sync({ memoryPath });
    await Array.fromAsync(sync.pass());
    home.write(3);
    await Array.fromAsync(sync.pass());
    expect(home.notes).toEqual([expect.stringContaining("cannot be written")]);
    expect(await home.texts()).toEqual(["words 1", "words 2", "words 3"]);
  });
});

describe("strange folders", () => {
  it("a folder under another name gives nothing twice, and a link to the folder above is not followed", async () => {
    using home = new Home();
    for (const at of [1, 2]) home.write(at);
    await home.pass();
    symlinkSync("..", join(home.places, "-srv-app", "loop"));
    renameSync(join(home.places, "-srv-app"), join(home.places, "-srv-moved"));
    const { sources } = await home.pass();
    expect(sources.map(({ state }) => state)).toEqual(["unchanged", "unchanged"]);
    expect(await home.texts()).toEqual(["words 1", "words 2"]);
    expect(existsSync(join(home.places, "-srv-moved", "loop"))).toBe(true);
  });

  it("a file that was replaced by a shorter one is refused, and the session keeps what it has", async () => {
    using home = new Home();
    home.write(1, "a long question about the harbor");
    await home.pass();
    home.write(1, "short");
    expect((await home.pass()).states).toEqual(["refused"]);
    // A refusal may pass, so the file is not taken for known.
    expect((await home.pass()).states).toEqual(["refused"]);
    expect(await home.texts()).toEqual(["a long question about the harbor"]);
  });

  it.skipIf(process.getuid?.() === 0)("an unreadable folder is reported, and the others are imported", async () => {
    using home = new Home();
    home.write(1);
    const closed = join(home.places, "-closed");
    mkdirSync(closed);
    chmodSync(closed, 0);
    const { states } = await home.pass();
    chmodSync(closed, 0o700);
    expect(states).toContain("imported");
  });

  it("an empty or missing place is no problem, unless a person named it", async () => {
    using home = new Home();
    mkdirSync(home.places, { recursive: true });
    expect((await home.pass()).states).toEqual([]);
    expect((await home.pass({ named: [home.places] })).states).toEqual(["refused"]);
    rmSync(home.places, { recursive: true });
    expect((await home.pass()).states).toEqual([]);
  });
});

describe("excluded folders", () => {
  it("are left out by the folder of the session and of the file, also through a link", async () => {
    using home = new Home();
    const real = home.folder.at("real", "secret");
    mkdirSync(real, { recursive: true });
    symlinkSync(home.folder.at("real"), home.folder.at("linked"));
    home.write(1, "by the session", { cwd: join(real, "deep") });
    home.write(2, "open");
    mkdirSync(join(home.places, "-scratch"), { recursive: true });
    writeFileSync(home.path(3, "-scratch"), line(idOf(3), 1, "by the file"));
    const excludes = [home.folder.at("linked", "secret"), "-scratch"];
    const { states } = await home.pass({ excludes });
    expect(states.toSorted()).toEqual(["imported", "skipped", "skipped"]);
    expect(await home.texts()).toEqual(["open"]);
    expect((await home.pass({ excludes })).states).toEqual([]);
  });

  it.each([
    ["~/private/*", "private/one/deep", true],
    ["~/private/*", "private", false],
    ["~/private", "private-not", false],
    ["~/**/keys", "a/b/keys", true],
    ["keys", "a/keys/b", true],
    ["keys", "a/keys2", false],
    ["~/a+(b)", "a+(b)", true],
    ["~/a+(b)", "aab", false],
  ])("%s and ~/%s: %s", async (pattern, folder, isLeftOut) => {
    using home = new Home();
    home.write(1, "words", { cwd: home.folder.at(folder) });
    expect((await home.pass({ excludes: [pattern] })).states).toEqual([isLeftOut ? "skipped" : "imported"]);
  });
});

describe("what was removed here", () => {
  it("a purged session stays purged, and a redacted record redacted, when their files grow", async () => {
    using home = new Home();
    for (const at of [1, 2]) home.write(at, `secret ${at}`);
    await home.pass();
    const ref = (at: number) => sessionRef({ key: `agent:main:import:direct:${idOf(at)}` });
    await home.store.remove(ref(1), { purge: true });
    const [page] = await Array.fromAsync(home.store.read(ref(2)));
    await redactRecords(home.store, ref(2), [page?.records[0]?.id ?? ""], { reason: "secret" });
    for (const at of [1, 2]) appendFileSync(home.path(at), line(idOf(at), 2, `more ${at}`));
    const { states } = await home.pass();
    expect(states.toSorted()).toEqual(["grown", "skipped"]);
    const texts = (await home.texts()).join("\n");
    expect(texts).toContain("more 2");
    expect(texts).not.toMatch(/secret|more 1/);
  });
});
