import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import process from "node:process";
import { linkPackages } from "./link-packages.ts";
import type { Fence } from "./markdown.ts";

/** What is run: a program, commands, or statements for PostgreSQL. `file` and `diff` write and change a file of the page. */
export type FenceKind = "typescript" | "shell" | "sql" | "file" | "diff";

/** How a fence is run; `skipped` says why it is not. */
export type FencePlan =
  | { readonly kind: FenceKind }
  | { readonly kind: "skipped"; readonly reason: string }
  | { readonly kind: "ignored" }
  | { readonly kind: "invalid"; readonly message: string };

const timeoutMs = 60_000;
const commandPattern = /^(?:npm run -s throughline --|npx -y @throughline\/cli|throughline)(?:\s|$)/;

/** The file that a fence with `file=NAME` writes or, as `diff`, changes. */
export function fenceFile(fence: Fence): string | null {
  return /(?:^|\s)file=([\w.-]+)(?:\s|$)/.exec(fence.info)?.[1] ?? null;
}

function kindOf(fence: Fence): FenceKind | null {
  const { language, info } = fence;
  const isMarked = /(?:^|\s)run(?:\s|$)/.test(info);
  if (fenceFile(fence) !== null) return language === "diff" ? "diff" : "file";
  if (language === "ts") return "typescript";
  if (language === "sql" && isMarked) return "sql";
  const firstLine = fence.text.split("\n").find((line) => line.trim() !== "" && !line.startsWith("#")) ?? "";
  return language === "sh" && (isMarked || commandPattern.test(firstLine)) ? "shell" : null;
}

/** What to do with a fence: TypeScript, lines for our own command and what is marked `run` or `file` run; everything else is text. */
export function planFence(fence: Fence): FencePlan {
  if (/\bno-run\b/.test(fence.info)) {
    const reason = /\bno-run reason="([^"]+)"/.exec(fence.info)?.[1];
    return reason ? { kind: "skipped", reason } : { kind: "invalid", message: 'no-run needs reason="…"' };
  }
  const kind = kindOf(fence);
  return { kind: kind ?? "ignored" };
}

const shellFunctions = [
  "set -euo pipefail",
  'throughline() { "$THROUGHLINE_DOC_NODE" "$THROUGHLINE_DOC_ENTRY" "$@"; }',
  'npm() { [ "${*:1:4}" = "run -s throughline --" ] || { command npm "$@"; return; }; shift 4; throughline "$@"; }',
  'npx() { [ "$1 $2" = "-y @throughline/cli" ] || { echo "only npx -y @throughline/cli is known here" >&2; return 2; }; shift 2; throughline "$@"; }',
].join("\n");

// Statements go to the server through the driver of store-postgres: a machine need not have psql.
const sqlProgram = `import pg from "pg";
const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
await client.connect();
const results = [await client.query(process.env.THROUGHLINE_DOC_SQL)].flat();
await client.end();
for (const { rows } of results) for (const row of rows) console.log(Object.values(row).join("|"));
`;

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

/**
 * Replaces the lines with `-` by those with `+`, where they stand in `text`.
 *
 * @returns null where a line with `-` is not in the text, or more than once
 */
export function applyDiff(text: string, diff: string): string | null {
  const lines = text.split("\n");
  let place: number | null = null;
  for (const line of diff.split("\n")) {
    const content = line.slice(1);
    if (line.startsWith("+")) {
      if (place === null) return null;
      lines.splice(place, 0, content);
      place += 1;
    } else if (line.trim() !== "") {
      const found = lines.indexOf(content);
      if (found === -1 || lines.includes(content, found + 1)) return null;
      if (line.startsWith("-")) lines.splice(found, 1);
      place = line.startsWith("-") ? found : found + 1;
    }
  }
  return lines.join("\n");
}

function databaseOnly({ DATABASE_URL }: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return DATABASE_URL === undefined ? {} : { DATABASE_URL };
}

/** Where the fences of one page run: a home of their own, shared by all of them, that is removed afterwards. */
export interface FenceRunner extends Disposable {
  /**
   * Runs one fence; returns null when it ended well, else what it printed. With `expected`, stdout must be that text, in which
   * `…` stands for anything within a line, and a line of `…` for any lines.
   */
  run(fence: Fence, kind: FenceKind, expected?: string | null): Promise<string | null>;
}

/** What the fences of a page find besides an empty home. */
export interface FenceRunnerOptions {
  /** Variables of the environment of programs. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Stands for the port 3000 that a page names. */
  readonly port?: number;
  /** Runs what is installed in a folder instead of the sources. */
  readonly installed?: InstalledPackages;
  /** Is the file that starts the command line where nothing is installed. @default that of the sources */
  readonly program?: string;
}

/** A folder in which a user has installed every package, and the Node that runs there. */
export interface InstalledPackages {
  readonly folder: string;
  /** The program. */
  readonly node: string;
}

/** Makes a runner. The home has the packages that a user of the package in `packageFolder` would have installed. */
export function createFenceRunner(
  root: string,
  packageFolder: string,
  { variables = {}, port = 3000, installed, program }: FenceRunnerOptions = {},
): FenceRunner {
  // The real path: modules are looked up from there.
  const home = realpathSync(mkdtempSync(join(installed?.folder ?? tmpdir(), "throughline-docs-")));
  if (installed === undefined) linkPackages(root, packageFolder, home);
  // As the pages have it: `npm pkg set type=module`. What `npm init` writes is commonjs.
  else writeFileSync(join(home, "package.json"), '{"type":"module"}');
  const node = installed?.node ?? process.execPath;
  const fromSources = installed === undefined ? ["--conditions=@throughline/source"] : [];
  const ours = Object.entries(process.env).filter(
    ([name]) => !name.startsWith("THROUGHLINE_") && name !== "NODE_OPTIONS",
  );
  const env: Record<string, string | undefined> = {
    ...Object.fromEntries(ours),
    PATH: `${dirname(node)}${delimiter}${process.env["PATH"] ?? ""}`,
    HOME: home,
    NO_COLOR: "1",
    // Times are shown in the zone of the machine.
    TZ: "UTC",
    // Every fence loads the same sources, and compiling them is most of what it costs.
    NODE_COMPILE_CACHE: join(root, "node_modules/.cache/tools"),
    // Before the `ts` file of a page there is no package.json that names its module format; Node's notice of that is not output.
    NODE_NO_WARNINGS: "1",
    THROUGHLINE_HOME: join(home, ".throughline"),
    THROUGHLINE_DOC_NODE: node,
    THROUGHLINE_DOC_ENTRY:
      installed === undefined
        ? (program ?? join(root, "apps/cli/bin/throughline.js"))
        : join(installed.folder, "node_modules/@throughline/cli/bin/throughline.js"),
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
            : outputProblem(stdout.replaceAll(String(port), "3000"), expected),
        );
      });
    });
  return {
    async run(fence, kind, expected = null) {
      const text = fence.text.replaceAll(/\b3000\b/g, String(port));
      const named = fenceFile(fence);
      if (kind === "file" || kind === "diff") {
        const path = join(home, named ?? "");
        const written = kind === "file" ? text : applyDiff(readFileSync(path, "utf8"), text);
        if (written === null) return `a line of the diff is not in ${named}, or not once`;
        writeFileSync(path, written);
        return null;
      }
      if (kind === "shell") {
        // Our own command must not find a provider's key: its output would depend on it.
        const programs = /\bnode \S/.test(text) ? variables : databaseOnly(variables);
        const options = { NODE_OPTIONS: fromSources.join(" ") };
        return execute("bash", ["-c", `${shellFunctions}\n${text}`], { ...programs, ...options }, expected);
      }
      const path = join(home, kind === "sql" ? `fence-${fence.line}.mjs` : `fence-${fence.line}.ts`);
      writeFileSync(path, kind === "sql" ? sqlProgram : text);
      return execute(
        node,
        [...fromSources, path],
        kind === "sql" ? { ...variables, THROUGHLINE_DOC_SQL: text } : variables,
        expected,
      );
    },
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  };
}
