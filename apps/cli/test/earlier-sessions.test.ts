import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";
import { runInTerminal } from "./terminal.ts";

const key = "agent:main:cli:direct:work";
let directory = temporaryDirectory();
beforeEach(async () => {
  directory = temporaryDirectory();
  await seed(directory.path, [{ key, drafts: [user("first word"), user("second word")] }]);
});
afterEach(() => directory.remove());

const run = (...args: readonly string[]) => runHere(directory.path, args);

const say = (text: string) => runHere(directory.path, ["append", key], { stdin: JSON.stringify(user(text)) });

describe("what a reset left in earlier sessions", () => {
  it("is shown first with --all, oldest first, each under its id", async () => {
    await run("reset", key, "--yes");
    await say("third word");
    await run("reset", key, "--yes");
    await say("fourth word");
    const { stdout } = await run("show", key, "--all");
    const order = [
      "Earlier session",
      "first word",
      "second word",
      "Earlier session",
      "third word",
      "Session",
      "fourth",
    ];
    expect(stdout).toMatch(new RegExp(order.join("[^]*"), "u"));
    expect(stdout.match(/^Earlier session \S+, before a reset$/gm)).toHaveLength(2);
    expect((await run("show", key)).stdout).not.toContain("first word");
    expect((await run("show", key, "--all", "--tail", "5")).stdout).not.toContain("first word");
    const shown = objects((await run("show", key, "--all", "--json")).stdout);
    expect(shown.map(({ kind }) => kind)).toEqual(["record", "end"]);
    const [, id = ""] = /^Earlier session (\S+), before a reset$/m.exec(stdout) ?? [];
    await run("delete", id, "--purge", "--yes");
    const purged = await run("show", key, "--all");
    expect(purged.stdout).toContain(`Earlier session ${id}: it is not under this key any more\n`);
    expect(purged.stdout).not.toContain("first word");
    expect(purged.stdout).toContain("third word");
  });

  it("is in /history --all, up to the count that is asked for", async () => {
    await run("reset", key, "--yes");
    await say("third word");
    await using terminal = runInTerminal(directory.path, ["chat", "--key", key, "--model", "offline"], {
      columns: 200,
    });
    await terminal.waitForPrompt();
    const ask = async (line: string): Promise<string> => {
      const seen = terminal.text().length;
      terminal.write(`${line}\r`);
      await terminal.waitForPrompt();
      return terminal.text().slice(seen);
    };
    expect(await ask("/history --all")).toMatch(
      /Earlier session[^]*first word[^]*second word[^]*Session[^]*third word/,
    );
    const two = await ask("/history 2 --all");
    expect(two).toMatch(/Earlier session[^]*second word[^]*third word/);
    expect(two).not.toContain("first word");
    expect(await ask("/history 1 --all")).not.toContain("Earlier session");
  });
});
