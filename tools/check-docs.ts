import { existsSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import process from "node:process";
import { createProviderSimulator } from "../packages/provider-simulator/src/index.ts";
import { findFiles, repositoryRoot } from "./find-files.ts";
import { readMarkdown } from "./markdown.ts";
import type { Fence, MarkdownParts } from "./markdown.ts";
import { createFenceRunner, planFence } from "./run-fences.ts";

/** What the check found. */
export interface DocsReport {
  readonly files: number;
  readonly links: number;
  readonly fencesRun: number;
  readonly fencesSkipped: number;
  /** Outputs of fences that were compared with the `text` fence behind them. */
  readonly outputsCompared: number;
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
  return findFiles(root, ".", [".md"])
    .filter((path) => posix.basename(path) !== "CHANGELOG.md" && !path.includes("/fixtures/"))
    .map((path) => {
      const text = readFileSync(join(root, path), "utf8");
      return { path, text, ...readMarkdown(text) };
    });
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

/**
 * What keeps a reader from running a README's examples as they stand: a package that its install lines leave out, and syntax
 * that the oldest Node of our `engines` does not know. The runner below would notice neither.
 */
function checkExamples(file: MarkdownFile): string[] {
  const installed = [...file.text.matchAll(/^npm install ([^#\n]+)/gm)].flatMap(([, names = ""]) =>
    names.trim().split(/\s+/),
  );
  return file.fences
    .filter((fence) => planFence(fence).kind === "typescript")
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

/** Runs the fences of one README from top to bottom, in one home, so that a later one may build on an earlier one. */
async function runReadme(
  root: string,
  file: MarkdownFile,
  variables: Readonly<Record<string, string>>,
): Promise<Pick<DocsReport, "fencesRun" | "fencesSkipped" | "outputsCompared" | "violations">> {
  const violations = checkExamples(file);
  let fencesRun = 0;
  let fencesSkipped = 0;
  let outputsCompared = 0;
  const folder = /^(?:packages|apps)\//.test(file.path) ? dirname(file.path) : rootReadmePackage;
  using runner = createFenceRunner(root, folder, variables);
  for (const [index, fence] of file.fences.entries()) {
    const plan = planFence(fence);
    if (plan.kind === "invalid") violations.push(`${file.path}:${fence.line} ${plan.message}`);
    if (plan.kind === "skipped") fencesSkipped += 1;
    if (plan.kind !== "typescript" && plan.kind !== "shell") continue;
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
  return /^(?:(?:packages|apps)\/[^/]+\/)?README\.md$|^docs\/(?:guides\/)?[^/]+\.md$/.test(path);
}

/** Checks every Markdown file below `root`: links, machine paths, and the examples of the READMEs. */
export async function checkDocs(root: string): Promise<DocsReport> {
  const files = readFiles(root);
  const byPath = new Map(files.map((file) => [file.path, file]));
  const violations = files.flatMap((file) => checkText(root, byPath, file));
  const waiting = files.filter((file) => isRunPage(file.path)).values();
  let fencesRun = 0;
  let fencesSkipped = 0;
  let outputsCompared = 0;
  // Two at a time: each fence is a process of its own, and most of its time is its start.
  // The providers that an example asks, with the keys and addresses where their users have them.
  await using simulator = createProviderSimulator({ fallback: () => "The folder holds three files." });
  await simulator.start();
  const variables = {
    ANTHROPIC_API_KEY: "any",
    ANTHROPIC_BASE_URL: simulator.url,
    OPENAI_API_KEY: "any",
    OPENAI_BASE_URL: `${simulator.url}/v1`,
    OLLAMA_HOST: simulator.url,
  };
  const worker = async (): Promise<void> => {
    for (const file of waiting) {
      const result = await runReadme(root, file, variables);
      fencesRun += result.fencesRun;
      fencesSkipped += result.fencesSkipped;
      outputsCompared += result.outputsCompared;
      violations.push(...result.violations);
    }
  };
  await Promise.all([worker(), worker()]);
  const links = files.reduce((total, file) => total + file.links.length, 0);
  return { files: files.length, links, fencesRun, fencesSkipped, outputsCompared, violations: violations.toSorted() };
}

if (import.meta.main) {
  const report = await checkDocs(repositoryRoot);
  for (const violation of report.violations) process.stdout.write(`${violation}\n`);
  const { files, links, fencesRun, fencesSkipped, outputsCompared } = report;
  const fences = `${fencesRun} examples run, ${outputsCompared} outputs compared, ${fencesSkipped} not run with a reason`;
  const end = report.violations.length === 0 ? "no violations" : `${report.violations.length} violations`;
  process.stdout.write(`docs: ${files} files, ${links} links, ${fences}, ${end}\n`);
  process.exitCode = report.violations.length === 0 ? 0 : 1;
}
