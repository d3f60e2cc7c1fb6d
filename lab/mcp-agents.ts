// Coding agents that start `throughline mcp` as their own `mcp add` registers it, each with the command of the guide: what it writes
// is what the guide shows, and the agent's own check connects to the bundled command line. No model is asked. The agents are
// installed into a folder of their own, from the npm registry; each run has an empty home.
// node --conditions=@throughline/source lab/mcp-agents.ts [folder that keeps the packages]
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";
import { agentPackages, emptyHome, installAgents } from "./agent-programs.ts";
import { installBundle } from "../tools/install-bundle.ts";
import { skippedPrefix } from "../tools/long-suite.ts";

interface Agent {
  readonly program: string;
  /** The package it is in. */
  readonly packageName: string;
  /** What its `mcp add` writes, in its home. */
  readonly file: string;
  /** The block of the guide that shows it. */
  readonly block: string;
  /** Whether it has connected. */
  isConnected(start: Start): Promise<boolean>;
}

interface Start {
  readonly bin: string;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

const agents: readonly Agent[] = [
  {
    program: "claude",
    packageName: "@anthropic-ai/claude-code",
    file: ".claude.json",
    block: ".mcp.json",
    isConnected: (start) => Promise.resolve(/throughline: .*✔ Connected/.test(output(start, ["mcp", "list"]))),
  },
  {
    program: "codex",
    packageName: "@openai/codex",
    file: ".codex/config.toml",
    block: "config.toml",
    isConnected: codexLists,
  },
  {
    program: "gemini",
    packageName: "@google/gemini-cli",
    file: ".gemini/settings.json",
    block: "mcpServers",
    isConnected: (start) => Promise.resolve(/✓ throughline: .*Connected/.test(output(start, ["mcp", "list"]))),
  },
  {
    program: "opencode",
    packageName: "opencode-ai",
    file: ".config/opencode/opencode.jsonc",
    block: "opencode.json",
    isConnected: (start) => Promise.resolve(/✓ throughline\W.*connected/.test(output(start, ["mcp", "list"]))),
  },
];

/** What a program prints, also on stderr, where some of them list. */
function output({ bin, cwd, env }: Start, args: readonly string[]): string {
  const { stdout, stderr } = spawnSync(bin, args, { cwd, env, encoding: "utf8", timeout: 60_000 });
  return stdout + stderr;
}

/** `codex mcp list` starts no server; its app server does, and lists the tools. */
async function codexLists({ bin, cwd, env }: Start): Promise<boolean> {
  const child = spawn(bin, ["app-server"], { cwd, env, stdio: ["pipe", "pipe", "ignore"] });
  const deadline = setTimeout(() => child.kill("SIGKILL"), 60_000);
  const requests = [
    { id: 1, method: "initialize", params: { clientInfo: { name: "throughline-test", version: "1" } } },
    { method: "initialized" },
    { id: 2, method: "mcpServerStatus/list", params: {} },
  ];
  child.stdin.write(requests.map((request) => `${JSON.stringify(request)}\n`).join(""));
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const { id, result } = JSON.parse(line) as { id?: number; result?: { data: { name: string; tools: object }[] } };
      if (id !== 2) continue;
      const server = result?.data.find(({ name }) => name === "throughline");
      return server !== undefined && "search_sessions" in server.tools && "read_session" in server.tools;
    }
    return false;
  } finally {
    clearTimeout(deadline);
    child.kill("SIGTERM");
  }
}

const guide = readFileSync(join(import.meta.dirname, "../docs/guides/memory-for-mcp-clients.md"), "utf8");

/** The command line of the guide that registers the server with a program, in words. */
function guideCommand(program: string): readonly string[] {
  const line = guide.split("\n").find((one) => one.startsWith(`${program} mcp add `));
  if (line === undefined) throw new Error(`the guide has no "${program} mcp add"`);
  return line.split(" ").slice(1);
}

function guideBlock(name: string): string {
  const [, block] = guide.split(`<!-- ${name} -->`);
  const [, text] = block?.match(/```\w+\n([\s\S]*?)```/) ?? [];
  if (text === undefined) throw new Error(`the guide has no block "${name}"`);
  return text;
}

/** The server's own part of a file of an agent; the whole text of a file that is not JSON. */
function entryOf(text: string): unknown {
  if (!text.trimStart().startsWith("{")) return text.trim();
  const { mcpServers, mcp } = JSON.parse(text) as Readonly<Record<string, Record<string, unknown> | undefined>>;
  const { env, ...entry } = ((mcpServers ?? mcp)?.["throughline"] ?? {}) as Readonly<Record<string, unknown>>;
  return isDeepStrictEqual(env ?? {}, {}) ? entry : { ...entry, env };
}

/** Gemini CLI starts no server in a folder that it does not trust. */
function homeOf(folder: string): NodeJS.ProcessEnv {
  return { ...emptyHome(folder), GEMINI_CLI_TRUST_WORKSPACE: "true" };
}

async function problemsOf(folder: string, bundle: string, agent: Agent): Promise<readonly string[]> {
  const { program, file, block, isConnected } = agent;
  const cwd = join(folder, "project");
  mkdirSync(cwd, { recursive: true });
  const bin = join(folder, "node_modules/.bin", program);
  const problems: string[] = [];
  const documented = { bin, cwd, env: homeOf(folder) };
  const said = output(documented, guideCommand(program));
  const path = join(documented.env["HOME"] ?? "", file);
  const written = existsSync(path) ? entryOf(readFileSync(path, "utf8")) : said;
  if (!isDeepStrictEqual(written, entryOf(guideBlock(block))))
    problems.push(`${program} mcp add wrote what the guide does not show: ${JSON.stringify(written)}`);
  const own = { bin, cwd, env: homeOf(folder) };
  const places = new Map([
    ["npx", [process.execPath]],
    ["-y", []],
    ["@throughline/cli", [bundle]],
    ["mcp", ["mcp"]],
  ]);
  const [mcp = "", add = "", ...rest] = guideCommand(program);
  const command = rest.flatMap((word) => places.get(word) ?? [word]);
  output(own, [mcp, add, ...command, "--home", own.env["HOME"] ?? ""]);
  if (!(await isConnected(own))) problems.push(`${program} did not connect`);
  return problems;
}

const ownFolder = process.argv[2] === undefined ? mkdtempSync(join(tmpdir(), "throughline-agents-")) : null;
const folder = process.argv[2] ?? ownFolder ?? "";
try {
  if (installAgents(folder)) {
    const { bin } = await installBundle(join(folder, "bundle"));
    for (const agent of agents) {
      const problems = await problemsOf(folder, bin, agent);
      for (const problem of problems) process.stdout.write(`FAIL ${problem}\n`);
      if (problems.length > 0) process.exitCode = 1;
      else process.stdout.write(`ok   ${agent.program} ${agentPackages[agent.packageName]} connected\n`);
    }
  } else process.stdout.write(`${skippedPrefix}the agents could not be installed\n`);
} finally {
  if (ownFolder !== null) rmSync(ownFolder, { recursive: true, force: true });
}
