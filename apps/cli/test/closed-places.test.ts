import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { binPath, objects, runHere, seed, sourceCondition, user } from "./harness.ts";

const key = "agent:main:cli:direct:plans";
const stranger = 65_534;
let place = "";

/** Whether this process may start another as somebody else. */
const isRoot = process.getuid?.() === 0;

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), "throughline-closed-"));
  chmodSync(place, 0o755);
  await seed(place, [{ key, drafts: [user("one")] }], `sqlite:${join(place, "home", "sessions.db")}`);
  await seed(place, [{ key, drafts: [user("one")] }], `jsonl:${join(place, "jsonl")}`);
  for (const name of ["home", "jsonl"]) ownBy(join(place, name), stranger);
});
afterAll(() => rmSync(place, { recursive: true, force: true }));

function ownBy(path: string, uid: number): void {
  spawnSync("chown", ["-R", String(uid), path]);
}

interface Answer {
  readonly code: number | null;
  readonly error: Record<string, unknown>;
}

function asStranger(args: readonly string[], input = ""): Answer {
  const run = spawnSync(process.execPath, [sourceCondition, binPath, ...args, "--json"], {
    uid: stranger,
    gid: stranger,
    cwd: "/",
    input,
    env: { PATH: process.env["PATH"], HOME: "/nonexistent" },
    encoding: "utf8",
  });
  return { code: run.status, error: objects(run.stderr).at(-1) ?? {} };
}

describe.skipIf(!isRoot)("a home or store that is closed to the user", () => {
  const draft = `${JSON.stringify(user("two"))}\n`;

  it.each(["sessions", "append", "show", "doctor", "stats"])("is never taken for an absent one by %s", (command) => {
    const home = join(place, "home");
    chmodSync(home, 0);
    const args = ["append", "show"].includes(command) ? [command, key] : [command];
    const { code, error } = asStranger([...args, "--home", home], draft);
    chmodSync(home, 0o700);
    expect([code, error["code"]]).toEqual([1, "FILE_UNREADABLE"]);
    expect(error["message"]).toContain(`Its folder "${home}" is closed to this user.`);
    expect(error["remedy"]).toContain(`\`chmod u+rwx ${home}\``);
  });

  it("names the file, and a command that opens it", () => {
    const path = join(place, "home", "sessions.db");
    chmodSync(path, 0);
    const closed = asStranger(["sessions", "--home", join(place, "home")]);
    expect([closed.code, closed.error["message"]]).toEqual([1, `"${path}" cannot be read.`]);
    // As its owner, as the message says.
    const [, command = ""] = /`(chmod [^`]+)`/.exec(String(closed.error["remedy"])) ?? [];
    spawnSync("sh", ["-c", command], { uid: stranger });
    expect(asStranger(["sessions", "--home", join(place, "home")]).code).toBe(0);
  });

  it("is refused where a configuration or a JSON Lines store cannot be read", { tags: ["slow"] }, () => {
    const config = join(place, "home", "config.json");
    writeFileSync(config, '{"agent":"other"}', { mode: 0 });
    chownSync(config, stranger, stranger);
    const { code, error } = asStranger(["sessions", "--home", join(place, "home")]);
    rmSync(config);
    expect([code, error["message"]]).toEqual([1, `"${config}" cannot be read.`]);

    const root = join(place, "jsonl");
    chmodSync(root, 0);
    for (const args of [["sessions"], ["append", key]])
      expect(asStranger([...args, "--store", `jsonl:${root}`], draft).error).toMatchObject({
        code: "FILE_UNREADABLE",
        message: `"${root}" cannot be read.`,
      });
    expect(asStranger(["sessions", "--store", `jsonl:${root}/below`]).error["code"]).toBe("FILE_UNREADABLE");
    chmodSync(root, 0o700);
  });

  it("says whose a place is that belongs to another user", () => {
    const home = join(place, "of-root");
    mkdirSync(home, { mode: 0o700 });
    cpSync(join(place, "home", "sessions.db"), join(home, "sessions.db"));
    const { code, error } = asStranger(["sessions", "--home", home]);
    expect([code, error["code"]]).toEqual([1, "FILE_UNREADABLE"]);
    expect(error["message"]).toContain(`It belongs to user 0, and this command runs as user ${stranger}.`);
    expect(error["remedy"]).not.toContain("chmod");
  });

  it("is no defect where a target cannot be looked at", () => {
    const target = join(place, "of-root", "x.jsonl");
    const exported = asStranger(["export", key, "-o", target, "--home", join(place, "home")]);
    expect([exported.code, exported.error["code"]]).toEqual([1, "FILE_UNREADABLE"]);
    const saved = asStranger(["backup", target, "--home", join(place, "home")]);
    expect([saved.code, saved.error["code"]]).toEqual([1, "FILE_UNREADABLE"]);
  });
});

describe("a store URL that names the other kind of place", () => {
  it("is refused with the URL that is meant, which is one of a store", async () => {
    const home = mkdtempSync(join(tmpdir(), "throughline-kinds-"));
    await seed(home, [{ key, drafts: [user("one")] }]);
    const folder = await runHere(home, ["sessions", "--store", `sqlite:${home}`, "--json"]);
    const [error] = objects(folder.stderr);
    expect([folder.code, error?.["code"]]).toEqual([1, "PATH_UNSAFE"]);
    const [, url = ""] = /--store (sqlite:\S+?),/.exec(String(error?.["remedy"])) ?? [];
    expect((await runHere(home, ["sessions", "--store", url])).code).toBe(0);
    for (const command of ["sessions", "append"]) {
      const args = command === "append" ? [command, key] : [command];
      const run = await runHere(home, [...args, "--store", `jsonl:${home}/sessions.db`, "--json"], { stdin: "{}" });
      expect(objects(run.stderr)[0]).toMatchObject({ code: "PATH_UNSAFE" });
    }
    const long = await runHere(home, ["sessions", "--store", `jsonl:${"a".repeat(300)}`, "--json"]);
    expect(objects(long.stderr)[0]).toMatchObject({
      code: "FILE_UNREADABLE",
      remedy: expect.stringContaining("shorter"),
    });
    rmSync(home, { recursive: true });
  });
});

describe("a store that is not there", () => {
  it("is empty where nobody named it, and only then", async () => {
    const home = mkdtempSync(join(tmpdir(), "throughline-absent-"));
    const absent = await runHere(home, ["sessions"]);
    expect([absent.code, absent.stderr]).toEqual([0, expect.stringContaining("There is no store yet")]);
    expect((await runHere(home, ["sessions", "--store", `sqlite:${home}/x.db`])).code).toBe(1);
    rmSync(home, { recursive: true });
  });
});
