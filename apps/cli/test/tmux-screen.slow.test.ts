import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { binPath, sourceCondition, temporaryDirectory } from "./harness.ts";

let directory = temporaryDirectory();
let server: Tmux | null = null;
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => {
  server?.end();
  server = null;
  directory.remove();
});

const hasTmux = spawnSync("tmux", ["-V"]).status === 0;

/** The second judge: a terminal that wraps, scrolls and resizes by its own code. */
class Tmux {
  readonly #socket: string;

  constructor(socket: string, home: string, args: readonly string[]) {
    this.#socket = socket;
    const words = [process.execPath, sourceCondition, binPath, ...args].map((word) => `'${word}'`).join(" ");
    const environment = `env -i PATH='${process.env["PATH"] ?? ""}' HOME='${home}' THROUGHLINE_HOME='${home}' TERM=tmux-256color LANG=C.UTF-8`;
    this.run("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", home, `${environment} ${words}`);
    this.run("set", "-g", "history-limit", "20000");
  }

  run(...args: readonly string[]): string {
    return execFileSync("tmux", ["-u", "-S", this.#socket, ...args], { encoding: "utf8" });
  }

  resize(columns: number, rows: number): void {
    this.run("resize-window", "-x", String(columns), "-y", String(rows));
  }

  keys(text: string): void {
    this.run("send-keys", "-l", text);
  }

  /** The whole text, what scrolled out first; wrapped rows are joined. */
  text(): string {
    return this.run("capture-pane", "-p", "-J", "-S", "-");
  }

  async waitFor(wanted: RegExp): Promise<void> {
    const untilMs = Date.now() + 60_000;
    while (!wanted.test(this.text())) {
      if (Date.now() > untilMs) throw new Error(`${String(wanted)} did not come: ${this.text()}`);
      await wait(50);
    }
  }

  end(): void {
    spawnSync("tmux", ["-S", this.#socket, "kill-server"]);
  }
}

describe.skipIf(!hasTmux)("a conversation in tmux", () => {
  it("loses and doubles nothing while the window changes its size, and has one prompt", async () => {
    const tmux = new Tmux(join(directory.path, "tmux"), directory.path, ["chat", "--key", "k", "--model", "offline"]);
    server = tmux;
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
      tmux.run("send-keys", "Enter");
      await tmux.waitFor(new RegExp(`understand "hello[^"]*number${at}"`.replaceAll(" ", "\\s")));
    }
    // The status line stands below the prompt.
    await tmux.waitFor(/^>\s*\n.* · offline rules/m);
    const text = tmux.text();
    for (const at of sizes.keys()) expect(text.match(new RegExp(`^> hello 日本 number${at}$`, "gm"))).toHaveLength(1);
    expect(text.match(/^>\s*$/gm)).toHaveLength(1);
  });
});
