import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { binPath, sourceCondition, temporaryDirectory } from "./harness.ts";
import { hasTmux, Tmux } from "./tmux.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

/** The second judge of what a terminal shows. */
describe.skipIf(!hasTmux)("a conversation in tmux", () => {
  it("loses and doubles nothing while the window changes its size, and has one prompt", async () => {
    const program = [process.execPath, sourceCondition, binPath].map((word) => `'${word}'`).join(" ");
    await using tmux = new Tmux(directory.path, `${program} chat --key k --model offline`);
    tmux.run("set", "-g", "history-limit", "20000");
    await tmux.waitFor(/^> $/m);
    const sizes = [
      [40, 24],
      [100, 30],
      [20, 8],
      [80, 40],
      [60, 24],
    ] as const;
    for (const [at, [columns, rows]] of sizes.entries()) {
      tmux.keys(`hello 日本 number${at}`);
      await tmux.waitFor(new RegExp(`number${at}`));
      tmux.resize(columns, rows);
      tmux.enter();
      await tmux.waitFor(new RegExp(`understand "hello[^"]*number${at}"`.replaceAll(" ", "\\s")));
    }
    // The status line stands below the prompt.
    await tmux.waitFor(/^>\s*\n.* · offline rules/m);
    const text = tmux.text();
    for (const at of sizes.keys()) expect(text.match(new RegExp(`^> hello 日本 number${at}$`, "gm"))).toHaveLength(1);
    expect(text.match(/^>\s*$/gm)).toHaveLength(1);
  });
});
