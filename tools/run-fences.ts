import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import type { Fence } from "./markdown.ts";

/** How a fence is run; `skipped` says why it is not. */
export type FencePlan =
  | { readonly kind: "typescript" | "shell" }
  | { readonly kind: "skipped"; readonly reason: string }
  | { readonly kind: "ignored" }
  | { readonly kind: "invalid"; readonly message: string };

const timeoutMs = 60_000;
const commandPattern = /^(?:pnpm -s )?throughline(?:\s|$)/;

/** What to do with a fence of a README: TypeScript, lines for our own command and `sh run` are run, everything else is text. */
export function planFence(fence: Fence): FencePlan {
  const firstLine = fence.text.split("\n").find((line) => line.trim() !== "" && !line.startsWith("#")) ?? "";
  const isShell = fence.language === "sh" && (commandPattern.test(firstLine) || /(?:^|\s)run(?:\s|$)/.test(fence.info));
  if (fence.language !== "ts" && !isShell) return { kind: "ignored" };
  if (!/\bno-run\b/.test(fence.info)) return { kind: isShell ? "shell" : "typescript" };
  const reason = /\bno-run reason="([^"]+)"/.exec(fence.info)?.[1];
  if (reason) return { kind: "skipped", reason };
  return { kind: "invalid", message: 'no-run needs reason="…"' };
}

const shellFunctions = [
  "set -euo pipefail",
  'throughline() { "$THROUGHLINE_DOC_NODE" --conditions=@throughline/source "$THROUGHLINE_DOC_ENTRY" "$@"; }',
  'pnpm() { [ "$1 $2" = "-s throughline" ] || { echo "only pnpm -s throughline is known here" >&2; return 2; }; shift 2; throughline "$@"; }',
].join("\n");

/** How an output differs from the one that a page shows; null when it does not. */
export function outputProblem(stdout: string, expected: string | null): string | null {
  if (expected === null) return null;
  const lines = (text: string): string[] =>
    text
      .trimEnd()
      .split("\n")
      .map((line) => line.trimEnd());
  const pattern = lines(expected)
    .map((line) => (line.trim() === "…" ? "[^]*?" : line.split("…").map(escaped).join("[^\n]*?")))
    .join("\n");
  const actual = lines(stdout).join("\n");
  return new RegExp(`^${pattern}$`).test(actual) ? null : `the page shows another output than\n${actual}`;
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** Where the fences of one README run: a home of their own, shared by all of them, that is removed afterwards. */
export interface FenceRunner extends Disposable {
  /**
   * Runs one fence; returns null when it ended well, else what it printed. With `expected`, stdout must be that text, in which
   * `…` stands for anything within a line, and a line of `…` for any lines.
   */
  run(fence: Fence, kind: "typescript" | "shell", expected?: string | null): Promise<string | null>;
}

/**
 * Makes a runner. Fences import packages as a user of the package in `packageFolder` would: by name, wherever their own
 * file lies.
 *
 * @param variables of the environment of TypeScript fences, besides the usual ones
 */
export function createFenceRunner(
  root: string,
  packageFolder: string,
  variables: Readonly<Record<string, string>> = {},
): FenceRunner {
  const home = mkdtempSync(join(tmpdir(), "throughline-docs-"));
  const ours = Object.entries(process.env).filter(
    ([name]) => !name.startsWith("THROUGHLINE_") && name !== "NODE_OPTIONS",
  );
  const env = {
    ...Object.fromEntries(ours),
    HOME: home,
    NO_COLOR: "1",
    // Every fence loads the same sources, and compiling them is most of what it costs.
    NODE_COMPILE_CACHE: join(root, "node_modules/.cache/tools"),
    THROUGHLINE_HOME: join(home, ".throughline"),
    THROUGHLINE_DOC_NODE: process.execPath,
    THROUGHLINE_DOC_ENTRY: join(root, "apps/cli/bin/throughline.js"),
    THROUGHLINE_DOC_IMPORTER: pathToFileURL(join(root, packageFolder, "src/index.ts")).href,
  };
  const execute = (
    file: string,
    args: readonly string[],
    more: Readonly<Record<string, string>>,
    expected: string | null,
  ): Promise<string | null> =>
    new Promise((resolve) => {
      execFile(file, args, { cwd: home, env: { ...env, ...more }, timeout: timeoutMs }, (error, stdout, stderr) => {
        resolve(
          error
            ? `${error.killed ? `not done after ${timeoutMs} ms\n` : ""}${stdout}${stderr}`.trim() || error.message
            : outputProblem(stdout, expected),
        );
      });
    });
  return {
    run(fence, kind, expected = null) {
      if (kind === "shell") return execute("bash", ["-c", `${shellFunctions}\n${fence.text}`], {}, expected);
      const path = join(home, `fence-${fence.line}.ts`);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, fence.text);
      const hooks = pathToFileURL(join(import.meta.dirname, "fence-imports.ts")).href;
      return execute(
        process.execPath,
        ["--conditions=@throughline/source", "--import", hooks, path],
        variables,
        expected,
      );
    },
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  };
}
