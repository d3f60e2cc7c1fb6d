import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { objects, runChild, runHere, temporaryDirectory } from "./harness.ts";
import type { Run } from "./harness.ts";

const directory = temporaryDirectory();
const home = directory.path;
afterAll(() => directory.remove());

const named = "11111111-2222-4333-8444-555555555555";

function transcript(id: string, version = 3): string {
  const header = { type: "session", version, id, timestamp: "2026-01-01T00:00:00.000Z", cwd: "/w" };
  const message = {
    type: "message",
    id: "a",
    parentId: null,
    timestamp: "2026-01-01T00:00:01.000Z",
    message: { role: "user", content: "hi" },
  };
  return `${JSON.stringify(header)}\n${JSON.stringify(message)}\n`;
}

beforeAll(() => {
  mkdirSync(join(home, "folder.jsonl"));
  mkdirSync(join(home, "many"));
  writeFileSync(join(home, "good.jsonl"), transcript("good"));
  writeFileSync(join(home, "many/good.jsonl"), transcript("of-many"));
  writeFileSync(join(home, "many/bad.jsonl"), `${transcript("bad")}{oops\n`);
  writeFileSync(join(home, "empty.jsonl"), "");
  writeFileSync(
    join(home, "binary.jsonl"),
    Uint8Array.from({ length: 3000 }, (_, index) => (index * 167) % 256),
  );
  writeFileSync(join(home, `${named}.jsonl`), transcript("another-id"));
  writeFileSync(join(home, "newer.jsonl"), transcript("newer", 9));
  symlinkSync("good.jsonl", join(home, "link.jsonl"));
  execFileSync("mkfifo", [join(home, "pipe.jsonl"), join(home, "sessions.json")]);
});

const codes = ({ stdout }: Run): unknown[] => objects(stdout).map(({ code }) => code);
const talk = ({ stderr }: Run): unknown[] => objects(stderr).map(({ kind, code }) => code ?? kind);

describe("doctor", () => {
  it.each(["pipe.jsonl", "sessions.json"])("does not wait for a named pipe: %s", async (path) => {
    const run = await runChild(home, ["doctor", path, "--json", "--timeout", "5000"]);
    expect([run.code, ...codes(run)]).toEqual([3, "FILE_UNREADABLE", undefined]);
  });

  // One link names a file again at each of 40 levels. Two would never end.
  it.each([".", ".."])("checks each file of a folder once, with a link to %s in it", async (to) => {
    const folder = join(home, `linked${to}`);
    mkdirSync(join(folder, "deep"), { recursive: true });
    for (const name of ["bad.jsonl", "deep/bad.jsonl"])
      writeFileSync(join(folder, name), `${transcript("bad")}{oops\n`);
    symlinkSync(to, join(folder, "deep/link"));
    const run = await runHere(home, ["doctor", folder, "--json"]);
    expect(codes(run).filter((code) => code === "LINE_MALFORMED")).toHaveLength(2);
  });

  it("says of a header that contradicts the file's name what an import says", async () => {
    const checked = await runHere(home, ["doctor", `${named}.jsonl`, "--json"]);
    const imported = await runHere(home, ["import", `${named}.jsonl`, "--json", "--dry-run"]);
    expect([checked.code, imported.code]).toEqual([0, 0]);
    // An import knows the key as well.
    expect(objects(checked.stdout)[0]).toEqual({ ...objects(imported.stderr)[0], key: null });
    expect(codes(checked)[0]).toBe("HEADER_MISMATCH");
  });

  it("follows a link that was named, and takes no id from its name", async () => {
    symlinkSync("good.jsonl", join(home, `${named.replaceAll("1", "6")}.jsonl`));
    const run = await runHere(home, ["doctor", `${named.replaceAll("1", "6")}.jsonl`, "--json"]);
    expect([run.code, codes(run)]).toEqual([0, [undefined]]);
  });

  it("makes no copy of what a newer program wrote", async () => {
    const run = await runHere(home, ["doctor", "newer.jsonl", "--repair", "--json"]);
    expect([run.code, ...codes(run)]).toEqual([3, "HEADER_INVALID", undefined]);
    expect(objects(run.stdout)[0]?.["repaired"]).toBe(false);
    expect(readdirSync(home).filter((name) => name.includes("repaired") || name.endsWith(".tmp"))).toEqual([]);
  });

  it("leaves the copy of an earlier run as it is, and an import passes over it", async () => {
    await runHere(home, ["doctor", "many", "--repair"]);
    const copy = join(home, "many/bad.jsonl.repaired.jsonl");
    writeFileSync(copy, readFileSync(copy, "utf8").replace('"hi"', '"by hand"'));
    const again = await runHere(home, ["doctor", "many", "--repair", "--json"]);
    expect([again.code, objects(again.stdout)[0]?.["repaired"]]).toEqual([3, false]);
    expect(readFileSync(copy, "utf8")).toContain("by hand");
    const { stdout, code } = await runHere(home, ["import", "many", "--json", "--store", `jsonl:${home}/many-store`]);
    const sources = objects(stdout)[0]?.["sources"] as { path: string; state: string }[];
    expect([code, sources.map(({ state }) => state)]).toEqual([3, ["imported", "skipped", "imported"]]);
  });
});

describe("import", () => {
  it.each([
    ["folder.jsonl", "FORMAT_UNKNOWN", "No session file was found in"],
    ["pipe.jsonl", "FILE_UNREADABLE", "is not a regular file"],
    ["link.jsonl", "PATH_UNSAFE", "is a symbolic link"],
    ["empty.jsonl", "FORMAT_UNKNOWN", "is empty"],
    ["binary.jsonl", "FORMAT_UNKNOWN", "does not begin like a transcript"],
    ["nowhere.jsonl", "FILE_NOT_FOUND", "does not exist"],
  ])("refuses %s with %s and says so once", async (path, code, message) => {
    const run = await runHere(home, ["import", path, "--json"]);
    const [last] = objects(run.stderr).slice(-1);
    expect([run.code, last?.["code"]]).toEqual([1, code]);
    expect(last?.["message"]).toContain(message);
    // Beside the failure itself one line, a finding or a note, and not both.
    expect(talk(run)).toHaveLength(2);
  });

  it("refuses the store it would import into, by whatever name, and nothing is there twice", async () => {
    const own = ["--store", `jsonl:${home}/store`, "--json"];
    await runHere(home, ["import", "good.jsonl", ...own]);
    symlinkSync("store/agents/main", join(home, "other-name"));
    const before = (await runHere(home, ["sessions", ...own])).stdout;
    for (const path of ["store", "store/agents/main/sessions/good.jsonl", "other-name"]) {
      const run = await runHere(home, ["import", path, ...own]);
      expect([run.code, ...talk(run)]).toEqual([1, "note", "INPUT_INVALID"]);
    }
    expect((await runHere(home, ["sessions", ...own])).stdout).toBe(before);
    const elsewhere = await runHere(home, ["import", "store", "--json", "--store", `jsonl:${home}/copy`]);
    expect(elsewhere.code).toBe(0);
  });

  it("takes the same file twice in one command, and ids that differ in case only", async () => {
    for (const id of ["Case", "cASE"]) writeFileSync(join(home, `${id}.jsonl`), transcript(id));
    const run = await runHere(home, ["import", "Case.jsonl", "Case.jsonl", "cASE.jsonl", "--json"]);
    const sources = objects(run.stdout)[0]?.["sources"] as { state: string; sessionId: string }[];
    expect(sources.map(({ state, sessionId }) => [state, sessionId])).toEqual([
      ["imported", "Case"],
      ["unchanged", "Case"],
      ["imported", "cASE-2"],
    ]);
  });
});

describe("a transcript that is none of ours", () => {
  const uuid = "6d1c94d8-5f0c-4d53-8a3c-0a8b7d2f9f11";
  const claude = { type: "user", uuid, parentUuid: null, sessionId: uuid, message: { role: "user", content: "x" } };
  it.each([
    ["returns.jsonl", transcript("returns").replaceAll("\n", "\r"), "carriage returns alone", "tr '\\r' '\\n'"],
  ])("is refused as what it is, and checked and repaired as nothing else: %s", async (name, text, what, remedy) => {
    const folder = join(home, "others");
    mkdirSync(folder, { recursive: true });
    const path = join(folder, name);
    writeFileSync(path, text);
    for (const from of ["auto", "pi"]) {
      const run = await runHere(home, ["import", path, "--from", from, "--json"]);
      const [last] = objects(run.stderr).slice(-1);
      expect([run.code, last?.["code"]]).toEqual([1, "FORMAT_UNKNOWN"]);
      expect([last?.["message"], last?.["remedy"]]).toEqual([
        expect.stringContaining(what),
        expect.stringContaining(remedy),
      ]);
    }
    const checked = await runHere(home, ["doctor", path, "--repair", "--json"]);
    expect([checked.code, ...codes(checked)]).toEqual([3, "TRANSCRIPT_FOREIGN", undefined]);
    expect(objects(checked.stdout)[0]?.["remedy"]).toContain(remedy);
    expect(readdirSync(folder)).not.toContain(`${name}.repaired.jsonl`);
    expect(readFileSync(path, "utf8")).toBe(text);
  });

  it.each([
    ["claude.jsonl", `${JSON.stringify(claude)}\n`],
    ["codex.jsonl", '{"type":"session_meta","payload":{"id":"x"}}\n'],
  ])("is imported where its program is known, and checked and repaired as nothing else: %s", async (name, text) => {
    const path = join(home, name);
    writeFileSync(path, text);
    const checked = await runHere(home, ["doctor", path, "--repair", "--json"]);
    expect([checked.code, ...codes(checked)]).toEqual([3, "TRANSCRIPT_FOREIGN", undefined]);
    expect(objects(checked.stdout)[0]?.["remedy"]).toContain(`throughline import ${path}`);
    const run = await runHere(home, ["import", path, "--json"]);
    expect([run.code, objects(run.stdout)[0]?.["totals"]]).toEqual([0, expect.objectContaining({ imported: 1 })]);
    expect(readFileSync(path, "utf8")).toBe(text);
    expect(existsSync(`${path}.repaired.jsonl`)).toBe(false);
  });
});

describe("copy", () => {
  it("into memory says that nothing stays, and onto itself changes nothing", async () => {
    await runHere(home, ["import", "good.jsonl"]);
    const key = "agent:main:import:direct:good";
    const inMemory = await runHere(home, ["copy", key, "--to-store", "memory:", "--json"]);
    expect([inMemory.code, ...talk(inMemory)]).toEqual([0, "note"]);
    const same = await runHere(home, ["copy", key, "--to-store", `sqlite:${home}/sessions.db`, "--json"]);
    expect([same.code, objects(same.stdout)[0]?.["state"]]).toEqual([0, "unchanged"]);
  });
});

describe("a home without a store", () => {
  const empty = join(home, "nobody");

  it.each([["sessions"], ["search", "x"], ["doctor"], ["export", "--all", "-o", "out"]])(
    "is empty for %s, and nothing is made",
    async (...args) => {
      const run = await runHere(home, ["--home", empty, ...args, "--json"]);
      expect([run.code, objects(run.stdout).map(({ kind }) => kind)]).toEqual([0, ["end"]]);
      expect(run.stderr).toContain("There is no store yet");
      expect(existsSync(empty)).toBe(false);
    },
  );

  it("is a mistake when somebody named the store", async () => {
    const run = await runHere(home, ["--store", `jsonl:${empty}`, "sessions", "--json"]);
    expect([run.code, ...talk(run)]).toEqual([1, "STORE_NOT_FOUND"]);
  });

  it("has no session of any name", async () => {
    const run = await runHere(home, ["--home", empty, "show", "x", "--json"]);
    expect([run.code, ...talk(run)]).toEqual([1, "note", "SESSION_NOT_FOUND"]);
  });
});

describe("backup", () => {
  it("of a store with a link in the place of an agent's folder is made of the others, and says so", async () => {
    const store = `jsonl:${join(home, "with-link")}`;
    const made = await runHere(home, ["new", "--key", "agent:main:one", "--store", store]);
    expect(made.code).toBe(0);
    symlinkSync(join(home, "many"), join(home, "with-link/agents/other"));
    const run = await runHere(home, ["backup", "of-link", "--store", store, "--json"]);
    expect([run.code, ...talk(run).filter((each) => each === "FILE_UNREADABLE")]).toEqual([3, "FILE_UNREADABLE"]);
    expect(objects(run.stdout)).toMatchObject([{ kind: "backup", path: join(home, "of-link") }]);
    const kept = await runHere(home, ["sessions", "--store", `jsonl:${join(home, "of-link")}`, "--json"]);
    expect(objects(kept.stdout)[0]).toMatchObject({ key: "agent:main:one" });
  });
});
