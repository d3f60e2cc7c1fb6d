import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { expect } from "vitest";
import { endProcessTrees } from "./process-tree.ts";

export const hasTmux: boolean = spawnSync("tmux", ["-V"]).status === 0;

/** A terminal that wraps, scrolls and resizes by its own code, with 80 columns and 24 rows. */
export class Tmux implements AsyncDisposable {
  readonly #socket: string;
  readonly #pid: number;

  /** Starts a server that runs a command of the shell in a folder, which is also its home. */
  constructor(home: string, command: string, environment: Readonly<Record<string, string>> = {}) {
    this.#socket = join(home, "tmux");
    const all = {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      THROUGHLINE_HOME: home,
      TERM: "tmux-256color",
      LANG: "C.UTF-8",
      ...environment,
    };
    const settings = Object.entries(all).map(([name, value]) => `${name}='${value}'`);
    const words = `env -i ${settings.join(" ")} ${command}`;
    const session = ["new-session", "-d", "-P", "-F", "#{pid}", "-x", "80", "-y", "24", "-c", home, words];
    this.#pid = Number(this.run("-f", "/dev/null", ...session));
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

  enter(): void {
    this.run("send-keys", "Enter");
  }

  screen(): string {
    return this.run("capture-pane", "-p", "-J");
  }

  /** The whole text, what scrolled out first; wrapped rows are joined. */
  text(): string {
    return this.run("capture-pane", "-p", "-J", "-S", "-");
  }

  /** Waits until the whole text matches. */
  async waitFor(wanted: RegExp): Promise<void> {
    await expect.poll(() => this.text(), { timeout: 60_000 }).toMatch(wanted);
  }

  /** Ends the server and everything that runs in it, also what a shell has stopped. */
  async [Symbol.asyncDispose](): Promise<void> {
    await endProcessTrees([this.#pid]);
  }
}
