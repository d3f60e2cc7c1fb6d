import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix } from "node:path";
import process from "node:process";
import { freePort } from "./free-port.ts";
import { createProviderSimulator } from "../packages/testing/src/index.ts";
import type { PostgresServer } from "../packages/store-postgres/test/postgres-server.ts";
import { findFiles, repositoryRoot } from "./find-files.ts";
import { installBundle } from "./install-bundle.ts";
import { readMarkdown } from "./markdown.ts";
import type { Fence, MarkdownParts } from "./markdown.ts";
import { checkFenceTypes, type FenceTypesReport, type InstalledTypes, type TypedPage } from "./check-fence-types.ts";
import {
  createFenceRunner,
  fenceFile,
  planFence,
  type FenceRunnerOptions,
  type InstalledPackages,
} from "./run-fences.ts";

/** What the check found. */
export interface DocsReport {
  readonly files: number;
  readonly links: number;
  readonly fencesRun: number;
  readonly fencesSkipped: number;
  /** Outputs of fences that were compared with the `text` fence behind them. */
  readonly outputsCompared: number;
  /** TypeScript fences whose types were checked. */
  readonly fencesTyped: number;
  readonly violations: readonly string[];
}

interface MarkdownFile extends MarkdownParts {
  readonly path: string;
  readonly text: string;
}

// A path of somebody's machine helps nobody else: `~` and relative paths do. Ada, the user of the examples, has no machine.
const machinePathPattern =
  /(?<![\w.~/:-])(?:\/(?:work|tmp|root|var\/folders|home\/(?!ada\b)[\w.-]+|Users\/(?!ada\b)[\w.-]+)(?:\/|\b)|[A-Z]:\\Users\\)/;
// Has every package among its dependencies, so it can stand in for the user of the root README's examples.
const rootReadmePackage = "apps/cli";

function readFiles(root: string): MarkdownFile[] {
  return (
    findFiles(root, ".", [".md"])
      .filter((path) => posix.basename(path) !== "CHANGELOG.md" && !path.includes("/fixtures/"))
      // `npm run docs` writes these pages from the sources, and git does not hold them.
      .filter((path) => !path.startsWith("docs/api/"))
      .map((path) => {
        const text = readFileSync(join(root, path), "utf8");
        return { path, text, ...readMarkdown(text) };
      })
  );
}

/** What is wrong with a link from `from` to `target`; null when it leads somewhere. */
function linkProblem(
  root: string,
  files: ReadonlyMap<string, MarkdownFile>,
  from: string,
  target: string,
): string | null {
  if (/^[a-z][a-z0-9+.-]*:/i.test(target)) return null;
  const [path = "", anchor] = decodeURIComponent(target).split("#");
  const resolved = path === "" ? from : posix.join(posix.dirname(from), path);
  if (resolved.startsWith("..") || !existsSync(join(root, resolved))) return `${target} leads nowhere`;
  if (anchor === undefined || /^L\d+/.test(anchor)) return null;
  const file = files.get(resolved);
  return file && !file.anchors.has(anchor) ? `${target}: ${resolved} has no heading of that name` : null;
}

function checkText(root: string, files: ReadonlyMap<string, MarkdownFile>, file: MarkdownFile): string[] {
  const violations: string[] = [];
  for (const { line, target } of file.links) {
    const problem = linkProblem(root, files, file.path, target);
    if (problem) violations.push(`${file.path}:${line} ${problem}`);
  }
  for (const [index, textLine] of file.text.split("\n").entries()) {
    const machinePath = machinePathPattern.exec(textLine);
    if (machinePath) violations.push(`${file.path}:${index + 1} ${machinePath[0]}: a path of one machine`);
  }
  return violations;
}

/** The words behind `npm install`. */
function installedBy({ text }: MarkdownFile): readonly string[] {
  return [...text.matchAll(/^npm install ([^#\n]+)/gm)].flatMap(([, names = ""]) => names.trim().split(/\s+/));
}

/**
 * What keeps a reader from running a README's examples as they stand: a package that its install lines leave out, and syntax
 * that the oldest Node of our `engines` does not know. The runner below would notice neither.
 */
function checkExamples(file: MarkdownFile): string[] {
  const installed = installedBy(file);
  return file.fences
    .filter(
      (fence) =>
        planFence(fence).kind !== "skipped" &&
        (fence.language === "ts" || (fence.language === "js" && fenceFile(fence) !== null)),
    )
    .flatMap((fence) => {
      const violations: string[] = [];
      const where = `${file.path}:${fence.line}`;
      for (const [, name = ""] of fence.text.matchAll(/ from "((?:@[^"/]+\/)?[^"/.:][^"/:]*)(?:\/[^"]*)?"/g)) {
        if (installed.length > 0 && !installed.includes(name))
          violations.push(`${where} ${name} is in no install line`);
      }
      if (/\busing \w+ =/.test(fence.text)) violations.push(`${where} \`using\`: Node 22 does not know it`);
      return violations;
    });
}

/** The package whose dependencies the examples of a page may import. */
function packageFolderOf(path: string): string {
  return /^(?:packages|apps|examples)\//.test(path) ? dirname(path) : rootReadmePackage;
}

interface PageReport {
  readonly fencesRun: number;
  readonly fencesSkipped: number;
  readonly outputsCompared: number;
  readonly violations: readonly string[];
}

/** Runs the fences of one page from top to bottom, in one home, so that a later one may build on an earlier one. */
async function runPage(root: string, file: MarkdownFile, options: FenceRunnerOptions): Promise<PageReport> {
  const violations = checkExamples(file);
  let fencesRun = 0;
  let fencesSkipped = 0;
  let outputsCompared = 0;
  using runner = createFenceRunner(root, packageFolderOf(file.path), options);
  for (const [index, fence] of file.fences.entries()) {
    const plan = planFence(fence);
    if (plan.kind === "invalid") violations.push(`${file.path}:${fence.line} ${plan.message}`);
    if (plan.kind === "skipped") fencesSkipped += 1;
    if (plan.kind === "invalid" || plan.kind === "skipped" || plan.kind === "ignored") continue;
    fencesRun += 1;
    const expected = expectedOutput(fence, file.fences[index + 1]);
    if (expected !== null) outputsCompared += 1;
    const failure = await runner.run(fence, plan.kind, expected);
    if (failure) violations.push(`${file.path}:${fence.line} the example fails:\n${failure}`);
  }
  return { fencesRun, fencesSkipped, outputsCompared, violations };
}

/** The output that a page shows for a fence: the `text` fence right after it. */
function expectedOutput(fence: Fence, next: Fence | undefined): string | null {
  const endLine = fence.line + fence.text.replace(/\n$/, "").split("\n").length + 1;
  return next !== undefined && next.language === "text" && next.line - endLine <= 2 ? next.text : null;
}

function isRunPage(path: string): boolean {
  return /^(?:(?:packages|apps|examples)\/[^/]+\/)?README\.md$|^docs\/(?:guides\/)?[^/]+\.md$/.test(path);
}

/** The pages that differ from the branch this one came from, committed or not; null, for all, where git cannot tell. */
function changedPages(root: string): readonly string[] | null {
  const git = (...args: readonly string[]): readonly string[] | null => {
    const { status, stdout } = spawnSync("git", args, { cwd: root, encoding: "utf8" });
    return status === 0 ? stdout.split("\n").filter((line) => line !== "") : null;
  };
  const base = git("merge-base", "HEAD", "@{upstream}") ?? git("merge-base", "HEAD", "origin/HEAD") ?? ["HEAD"];
  const changed = git("diff", "--name-only", ...base);
  const added = git("ls-files", "--others", "--exclude-standard");
  return changed === null || added === null ? null : [...changed, ...added].filter((path) => path.endsWith(".md"));
}

/** The server for pages that need PostgreSQL: the one of the tests of store-postgres. */
async function startDatabase(): Promise<PostgresServer> {
  const { startPostgres } = await import("../packages/store-postgres/test/postgres-server.ts");
  const server = await startPostgres();
  if ("unavailable" in server) throw new Error(server.unavailable);
  return server;
}

type ExamplesReport = Pick<DocsReport, "fencesRun" | "fencesSkipped" | "outputsCompared" | "violations">;

/** Runs the examples of the pages, with providers, keys and databases where their readers have them. */
async function runPages(
  root: string,
  pages: readonly MarkdownFile[],
  around: Pick<FenceRunnerOptions, "installed" | "program">,
): Promise<ExamplesReport> {
  const violations: string[] = [];
  const waiting = pages.values();
  const counts = { fencesRun: 0, fencesSkipped: 0, outputsCompared: 0 };
  // The providers that an example asks, with the keys and addresses where their users have them.
  await using simulator = createProviderSimulator({ fallback: () => "The folder holds three files." });
  await simulator.start();
  const databasePages = pages.filter(({ text }) => text.includes("DATABASE_URL"));
  const database = databasePages.length > 0 ? await startDatabase() : null;
  const variables = {
    ANTHROPIC_API_KEY: "any",
    ANTHROPIC_BASE_URL: simulator.url,
    OPENAI_API_KEY: "any",
    OPENAI_BASE_URL: `${simulator.url}/v1`,
    OLLAMA_HOST: simulator.url,
    ...(database === null ? {} : { DATABASE_URL: database.url }),
  };
  const worker = async (): Promise<void> => {
    for (const file of waiting) {
      const options = { variables, port: await freePort(), ...around };
      const { violations: found, ...counted } = await runPage(root, file, options);
      for (const [name, count] of Object.entries(counted)) counts[name as keyof typeof counts] += count;
      violations.push(...found);
    }
  };
  // Two at a time: each fence is a process of its own, and most of its time is its start.
  await Promise.all([worker(), worker()]).finally(() => database?.stop());
  return { ...counts, violations };
}

function typedPages(pages: readonly MarkdownFile[]): readonly TypedPage[] {
  return pages.map(({ path, fences }) => ({ path, packageFolder: packageFolderOf(path), fences }));
}

/**
 * Checks every Markdown file below `root`: links, machine paths, and the examples of the pages that are run.
 *
 * @param wanted limits the examples to pages whose path begins with one of these; null for all
 * @param program starts the command line of the examples; that of the sources where it is left out
 */
export async function checkDocs(
  root: string,
  wanted: readonly string[] | null = null,
  program?: string,
): Promise<DocsReport> {
  const files = readFiles(root);
  const byPath = new Map(files.map((file) => [file.path, file]));
  const violations = files.flatMap((file) => checkText(root, byPath, file));
  const pages = files.filter(
    ({ path }) => isRunPage(path) && (wanted === null || wanted.some((start) => path.startsWith(start))),
  );
  const run = await runPages(root, pages, program === undefined ? {} : { program });
  const typed = await checkFenceTypes(root, typedPages(pages));
  return {
    ...run,
    files: files.length,
    links: files.reduce((total, file) => total + file.links.length, 0),
    fencesTyped: typed.fences,
    violations: [...violations, ...run.violations, ...typed.violations].toSorted(),
  };
}

/** The pages whose readers have installed packages: those of packages that are published, and those of `docs`. */
function installedPages(root: string): readonly MarkdownFile[] {
  return readFiles(root).filter(({ path }) => {
    const folder = /^(packages|apps)\/[^/]+(?=\/)/.exec(path)?.[0];
    if (folder === undefined) return isRunPage(path) && !path.startsWith("examples/");
    const manifest = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as {
      readonly private?: boolean;
    };
    return isRunPage(path) && manifest.private !== true;
  });
}

/** What the install lines of these pages name. */
export function namesToInstall(root: string): readonly string[] {
  return [...new Set(installedPages(root).flatMap(installedBy))].filter((name) => !name.startsWith("-")).toSorted();
}

/** Runs the examples from installed packages. */
export function runInstalledExamples(root: string, installed: InstalledPackages): Promise<ExamplesReport> {
  return runPages(root, installedPages(root), { installed });
}

/** Checks the types of the examples against installed packages. */
export function checkInstalledTypes(root: string, installed: InstalledTypes): Promise<FenceTypesReport> {
  return checkFenceTypes(root, typedPages(installedPages(root)), installed);
}

if (import.meta.main) {
  // Paths as arguments limit the pages whose examples run; `--changed` takes those that git shows as changed.
  const args = process.argv.slice(2);
  const wanted = args.includes("--changed") ? changedPages(repositoryRoot) : args.length === 0 ? null : args;
  // The bundle starts in a quarter of the time of the sources, and it is what readers run. Few pages are not worth the build.
  const folder = wanted === null ? mkdtempSync(join(tmpdir(), "throughline-installed-")) : null;
  const program = folder === null ? undefined : (await installBundle(folder)).bin;
  const report = await checkDocs(repositoryRoot, wanted, program).finally(() => {
    if (folder !== null) rmSync(folder, { recursive: true, force: true });
  });
  for (const violation of report.violations) process.stdout.write(`${violation}\n`);
  const { files, links, fencesRun, fencesSkipped, outputsCompared, fencesTyped } = report;
  const fences = `${fencesRun} examples run, ${outputsCompared} outputs compared, ${fencesTyped} typed, ${fencesSkipped} not run with a reason`;
  const end = report.violations.length === 0 ? "no violations" : `${report.violations.length} violations`;
  process.stdout.write(`docs: ${files} files, ${links} links, ${fences}, ${end}\n`);
  process.exitCode = report.violations.length === 0 ? 0 : 1;
}
