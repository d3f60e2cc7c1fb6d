import { createHash } from "node:crypto";
import { appendFileSync, mkdirSync, readdirSync, readFileSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";
import type { Run } from "./harness.ts";

const directory = temporaryDirectory();
const home = directory.path;

const run = (...args: readonly string[]): Promise<Run> => runHere(home, args);
const kindsOf = (text: string, kind: string): Record<string, unknown>[] =>
  objects(text).filter((value) => value["kind"] === kind);

/** The only transcript of a store of files. */
function transcriptIn(folder: string, store = "store"): string {
  const sessions = join(folder, store, "agents/main/sessions");
  return join(sessions, readdirSync(sessions).find((each) => each.endsWith(".jsonl")) ?? "");
}

afterAll(() => directory.remove());

describe("doctor", () => {
  const header = '{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/ada"}';
  const message = (id: string, parentId: string | null): string =>
    JSON.stringify({
      type: "message",
      id,
      parentId,
      timestamp: "2026-01-01T00:00:01.000Z",
      message: { role: "user", content: id },
    });

  it("repairs a copy and touches neither the original nor a copy that is there", async () => {
    const folder = join(home, "odd");
    mkdirSync(folder);
    const broken = join(folder, "broken.jsonl");
    writeFileSync(broken, `${header}\n${message("a", null)}\n{oops\n${message("b", "gone")}\n`);
    writeFileSync(join(folder, "good.jsonl"), `${header}\n${message("a", null)}\n`);
    const before = createHash("sha256").update(readFileSync(broken)).digest("hex");
    const first = await run("doctor", folder, "--repair", "--json");
    expect(first.code).toBe(3);
    expect(kindsOf(first.stdout, "finding").map(({ code, line, repaired }) => [code, line, repaired])).toEqual([
      ["LINE_MALFORMED", 3, true],
      ["ORPHAN_PARENT", 4, true],
    ]);
    expect(readdirSync(folder).toSorted()).toEqual(["broken.jsonl", "broken.jsonl.repaired.jsonl", "good.jsonl"]);
    expect(createHash("sha256").update(readFileSync(broken)).digest("hex")).toBe(before);
    const repaired = readFileSync(`${broken}.repaired.jsonl`, "utf8");
    expect(repaired).toBe(`${header}\n${message("a", null)}\n${message("b", "a")}\n`);
    const again = await run("doctor", folder, "--repair", "--json");
    expect(kindsOf(again.stderr, "note").map(({ message: text }) => String(text))).toEqual([
      expect.stringContaining("was not touched"),
    ]);
    expect(readFileSync(`${broken}.repaired.jsonl`, "utf8")).toBe(repaired);
    expect((await run("doctor", `${broken}.repaired.jsonl`)).code).toBe(0);
  });

  it("names files in a store of files that it cannot read, and how they come in", async () => {
    const place = join(home, "returns");
    const url = `jsonl:${place}`;
    await seed(home, [{ key: "agent:main:good", drafts: [user("a"), assistant("b")] }], url);
    const sessions = join(place, "agents/main/sessions");
    const known = join(sessions, readdirSync(sessions).find((name) => name.startsWith("id-")) ?? "");
    writeFileSync(known, readFileSync(known, "utf8").replaceAll("\n", "\r"));
    const stray = join(sessions, "s1.jsonl");
    const text = `${header}\r${message("a", null)}\r${message("b", "a")}\r`;
    writeFileSync(stray, text);
    for (const command of [["doctor"], ["verify"], ["verify", "--full"]]) {
      const { code, stdout } = await run(...command, "--store", url, "--json");
      expect(code).toBe(3);
      const found = kindsOf(stdout, "finding");
      expect(found.map((finding) => [finding["code"], finding["path"], finding["line"]])).toEqual([
        ["TRANSCRIPT_FOREIGN", known, 1],
        ["TRANSCRIPT_FOREIGN", stray, 1],
      ]);
      expect(found[1]?.["remedy"]).toContain(`tr '\\r' '\\n' < ${stray} > COPY.jsonl`);
    }
    expect(readFileSync(stray, "utf8")).toBe(text);
    const copy = join(home, "copy.jsonl");
    for (const [at, file] of [known, stray].entries()) {
      writeFileSync(copy, readFileSync(file, "utf8").replaceAll("\r", "\n"));
      expect((await run("import", copy, "--key", `agent:main:back:${at}`, "--store", url)).code).toBe(0);
      expect((await run("show", `agent:main:back:${at}`, "--store", url)).stdout).not.toBe("");
    }
  });

  it("finds every line of a transcript we write to be JSON, and one that is not", async () => {
    const own = join(home, "own");
    await seed(
      own,
      [
        {
          key: "agent:main:own",
          drafts: [user('a\u2028b\n"c"'), { type: "note", text: "\u0000 \ud800 \u001b" }, assistant("d")],
        },
      ],
      "jsonl:store",
    );
    const sessions = join(own, "store/agents/main/sessions");
    const [name = ""] = readdirSync(sessions).filter((each) => each.endsWith(".jsonl"));
    const path = join(sessions, name);
    const lines = readFileSync(path, "utf8").split("\n");
    expect(lines.pop()).toBe("");
    expect(lines.map((line) => (JSON.parse(line) as { type: string }).type)).toEqual([
      "session",
      "message",
      "note",
      "message",
    ]);
    expect((await run("doctor", path)).code).toBe(0);
    appendFileSync(path, "not a record\n");
    const { code, stdout } = await run("doctor", path, "--json");
    expect(code).toBe(3);
    expect(kindsOf(stdout, "finding").filter(({ severity }) => severity === "error")).toMatchObject([
      { code: "LINE_MALFORMED", line: 5, path },
    ]);
  });

  it("lets a reading command say once what the store has met", async () => {
    const torn = join(home, "torn-once");
    await seed(torn, [{ key: "agent:main:torn", drafts: [user("one")] }], "jsonl:store");
    const sessions = join(torn, "store/agents/main/sessions");
    const path = join(sessions, readdirSync(sessions).find((each) => each.endsWith(".jsonl")) ?? "");
    appendFileSync(path, '{"type":"mess');
    // A while ago: an end that was written just now may be one that is still being written.
    utimesSync(path, new Date(0), new Date(0));
    const { code, stderr, stdout } = await runHere(torn, ["show", "agent:main:torn", "--store", "jsonl:store"], {
      cwd: torn,
    });
    expect(code).toBe(0);
    expect(stdout).toContain("one");
    expect(stderr.match(/TAIL_TORN/g)).toHaveLength(1);
    expect(
      (await runHere(torn, ["show", "agent:main:torn", "--quiet", "--store", "jsonl:store"], { cwd: torn })).stderr,
    ).toBe("");
  });

  it("says that the store has set a torn end aside", async () => {
    const torn = join(home, "torn");
    const url = "jsonl:store";
    await seed(torn, [{ key: "agent:main:torn", drafts: [user("one"), user("two")] }], url);
    const path = transcriptIn(torn);
    const lines = readFileSync(path, "utf8").split("\n");
    // The beginning of an append of two records, as the store writes them, whose writer died: nobody has acknowledged it.
    await seed(torn, [{ key: "agent:main:torn", drafts: [user("three"), user("four")] }], "jsonl:other");
    const other = readFileSync(transcriptIn(torn, "other"), "utf8").split("\n");
    const begun = (other[1] ?? "").replace('"seq":1', `"seq":${lines.length - 1}`).replace(/,"sum":\d+/, "");
    expect(begun).toContain('"batch":[1,2]');
    appendFileSync(path, `${begun}\n${other[2]?.slice(0, -5)}`);
    utimesSync(path, new Date(0), new Date(0));
    const before = await runHere(torn, ["doctor", "--json", "--store", url], { cwd: torn });
    expect(kindsOf(before.stdout, "finding").map(({ code, path: at, line }) => [code, at, line])).toEqual([
      ["TAIL_TORN", path, 5],
      ["BATCH_INCOMPLETE", path, 4],
    ]);
    const stdin = `${JSON.stringify(user("five"))}\n`;
    const added = await runHere(torn, ["append", "agent:main:torn", "--store", url], { cwd: torn, stdin });
    expect([added.code, added.stdout]).toEqual([0, expect.stringMatching(/^3 /)]);
    expect(readdirSync(join(torn, "store/agents/main/throughline/torn"))).toHaveLength(1);
    expect((await runHere(torn, ["doctor", "--json", "--store", url], { cwd: torn })).code).toBe(0);
  });

  it("reports what was cut off an acknowledged append once, in every command", async () => {
    const cut = join(home, "cut");
    await seed(cut, [{ key: "agent:main:cut", drafts: [user("one"), user("two")] }], "jsonl:store");
    const path = transcriptIn(cut);
    truncateSync(path, readFileSync(path).length - 5);
    for (const command of [["doctor"], ["verify"], ["verify", "--full"]]) {
      const { stdout, code } = await runHere(cut, [...command, "--json", "--store", "jsonl:store"], { cwd: cut });
      expect(code).toBe(3);
      expect(kindsOf(stdout, "finding").map((finding) => [finding["code"], finding["path"], finding["line"]])).toEqual([
        ["RECORD_MISSING", path, 3],
      ]);
    }
    const shown = await runHere(cut, ["show", "agent:main:cut", "--store", "jsonl:store"], { cwd: cut });
    expect(shown.stdout).toContain("one");
    expect(shown.stderr.match(/RECORD_MISSING|LINE_MALFORMED/g)).toEqual(["RECORD_MISSING"]);
  });

  it("calls a line that was imported as it is no damage of the store, in either store", async () => {
    const odd = join(home, "imported-odd");
    mkdirSync(odd);
    writeFileSync(join(odd, "odd.jsonl"), `${header}\n${message("a", null)}\n{oops\n`);
    for (const url of ["jsonl:files", "sqlite:one.db"]) {
      await runHere(odd, ["import", "odd.jsonl", "--key", "agent:main:odd", "--store", url], { cwd: odd });
      const { stdout, stderr } = await runHere(odd, ["doctor", "--json", "--store", url], { cwd: odd });
      expect(
        kindsOf(stdout, "finding").map((finding) => [finding["code"], finding["severity"], finding["key"]]),
      ).toEqual([["LINE_MALFORMED", "warning", "agent:main:odd"]]);
      expect(stderr).not.toContain("restore-backup");
      expect((await runHere(odd, ["verify", "--full", "--store", url], { cwd: odd })).code).toBe(0);
    }
  });

  it("reports a line that is no record once, with its file and line", async () => {
    const odd = join(home, "once");
    await seed(odd, [{ key: "agent:main:odd", drafts: [user("one")] }], "jsonl:store");
    const path = transcriptIn(odd);
    appendFileSync(path, "no record\n");
    for (const command of [["doctor"], ["verify"], ["verify", "--full"]]) {
      const { stdout } = await runHere(odd, [...command, "--json", "--store", "jsonl:store"], { cwd: odd });
      expect(kindsOf(stdout, "finding").map((finding) => [finding["code"], finding["path"], finding["line"]])).toEqual([
        ["LINE_MALFORMED", path, 3],
      ]);
    }
  });

  it("looks into a whole directory and its index", async () => {
    const folder = join(home, "indexed");
    mkdirSync(folder);
    writeFileSync(
      join(folder, "sessions.json"),
      JSON.stringify({ "agent:main:gone": { sessionId: "gone", updatedAt: 1 } }),
    );
    writeFileSync(join(folder, "s1.jsonl"), `${header}\n${message("a", null)}\n`);
    const { stdout, code } = await run("doctor", folder, "--json");
    expect(code).toBe(3);
    expect(
      kindsOf(stdout, "finding")
        .map((finding) => finding["code"])
        .toSorted(),
    ).toEqual(["SESSION_FILE_MISSING", "SESSION_UNINDEXED"]);
  });
});
