import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { createInputHistory } from "../src/chat/input-history.ts";
import { readBoundedFile } from "@throughline/config/internal";
import { objects, runChild, seed, temporaryDirectory, user } from "./harness.ts";

const directory = temporaryDirectory();
const home = join(directory.path, "home");

afterEach(() => rmSync(home, { recursive: true, force: true }));

function pipe(name: string): string {
  mkdirSync(home, { recursive: true });
  const path = join(home, name);
  execFileSync("mkfifo", [path]);
  return path;
}

describe("a pipe that nobody writes to", () => {
  it.each(["sync.json", "summarizer-breakers.json", "chat-history-main.jsonl"])(
    "in the place of %s keeps nobody from a chat",
    { tags: ["slow"] },
    async (name) => {
      const path = pipe(name);
      const once = ["chat", "--once", "hi", "--model", "offline/offline-rules", "--timeout", "20000"];
      const { code, stdout } = await runChild(home, once);
      expect([code, stdout]).toEqual([0, expect.stringMatching(/./)]);
      const { code: talked } = await runChild(
        home,
        ["chat", "--model", "offline/offline-rules", "--timeout", "20000"],
        { stdin: "hello\n/quit\n" },
      );
      expect([talked, existsSync(path)]).toEqual([0, true]);
    },
  );

  it("is no backup, and the store stays as it is", async () => {
    const path = pipe("backup.db");
    const store = join(home, "sessions.db");
    await seed(home, [{ key: "agent:main:a", drafts: [user("a")] }]);
    const before = readFileSync(store);
    const { code, stderr } = await runChild(home, ["restore-backup", path, "--yes", "--json", "--timeout", "5000"]);
    expect([code, objects(stderr).at(-1)]).toMatchObject([1, { code: "PATH_UNSAFE", details: { path } }]);
    expect(readFileSync(store).equals(before)).toBe(true);
  });
});

describe("the history of inputs", () => {
  it("is kept in memory where its file is a pipe, a folder or too large, and says so once", () => {
    mkdirSync(home);
    const large = join(home, "large");
    writeFileSync(large, "");
    execFileSync("truncate", ["-s", "3G", large]);
    for (const path of [pipe("history"), home, large]) {
      const errors: unknown[] = [];
      const history = createInputHistory(path, (error) => errors.push(error));
      history.add("one");
      history.add("two");
      expect([history.older(""), history.older(""), errors.length]).toEqual(["two", "one", 1]);
    }
    expect(statSync(large).size).toBe(3 * 2 ** 30);
  });
});

describe("a bounded file", () => {
  it("is read whole, whatever it is encoded in", () => {
    mkdirSync(home);
    const path = join(home, "text");
    writeFileSync(path, "a\u00e9\u{1f600}\n");
    expect(readBoundedFile(path, { what: "test", mostBytes: 8 })).toBe("a\u00e9\u{1f600}\n");
    expect(() => readBoundedFile(path, { what: "test", mostBytes: 7 })).toThrow(/has 8 bytes; a test has at most 7/);
  });
});
