import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, seed, temporaryDirectory, user } from "./harness.ts";
import { runInTerminal } from "./terminal.ts";

const key = "agent:main:cli:direct:work";
let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

describe("/history", () => {
  it("shows the window, and with --all what compactions left behind", async () => {
    const drafts = Array.from({ length: 20 }, (_, index) => [
      user(`Look after quay ${index}. ${"Never paint it red. ".repeat(20)}`),
      assistant(`Quay ${index} is looked after. ${"No red paint there. ".repeat(20)}`),
    ]).flat();
    await seed(directory.path, [{ key, drafts }]);
    await using terminal = runInTerminal(directory.path, ["chat", "--key", key, "--model", "offline"], {
      columns: 300,
    });
    await terminal.waitForPrompt();
    let seen = 0;
    const ask = async (line: string): Promise<string> => {
      seen = terminal.text().length;
      terminal.write(`${line}\r`);
      await terminal.waitForPrompt();
      return terminal.text().slice(seen);
    };
    await ask("/compact");
    await ask("/compact");
    const short = await ask("/history 100");
    expect(short).not.toContain("#1 user");
    expect(short).toContain("Quay 19 is looked after.");
    const all = await ask("/history --all");
    for (let index = 0; index < 20; index++) {
      expect(all).toContain(`Look after quay ${index}.`);
      expect(all).toContain(`Quay ${index} is looked after.`);
    }
    expect(all).toMatch(/#41 compaction {2}\S/);
    expect(all.match(/#1 user/g)).toHaveLength(1);
    const last = await ask("/history 2 --all");
    expect(last.match(/^#\d+ /gm)).toHaveLength(2);
    expect(last).not.toContain("#1 user");
    expect(await ask("/history --al")).toContain('/history [N] [--all] takes no "--al".');
    expect(await ask("/history -3")).toContain('/history [N] [--all] takes no "-3".');
  });
});
