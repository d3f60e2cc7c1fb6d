// The clients of both lines of the MCP SDK, each in its oldest and newest version, against the bundled command line over both
// transports and in both generations of the protocol: all get the same answers. The packages are installed into a folder of their
// own, from the npm registry, without install scripts.
// node --conditions=@throughline/source lab/mcp-clients.ts [folder that keeps the packages]
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { isDeepStrictEqual } from "node:util";
import { installBundle } from "../tools/install-bundle.ts";
import { skippedPrefix } from "../tools/long-suite.ts";

const packages: Readonly<Record<string, string>> = {
  "v1-oldest": "npm:@modelcontextprotocol/sdk@1.18.2",
  "v1-newest": "npm:@modelcontextprotocol/sdk@1.32.2",
  "v2-oldest": "npm:@modelcontextprotocol/client@2.0.0",
  "v2-newest": "npm:@modelcontextprotocol/client@2.4.0",
};

const key = "agent:main:cli:direct:kafka";
const drafts = [
  { type: "message", message: { role: "user", content: "How do we rotate the keys?" } },
  { type: "message", message: { role: "assistant", content: [{ type: "text", text: "\u001b[31mBy kafka-rotate." }] } },
];

/** False without a registry. */
function install(folder: string): boolean {
  mkdirSync(folder, { recursive: true });
  copyFileSync(join(import.meta.dirname, "peers/mcp/client.ts"), join(folder, "client.ts"));
  if (Object.keys(packages).every((name) => existsSync(join(folder, "node_modules", name)))) return true;
  const manifest = { name: "mcp-peer", private: true, type: "module", dependencies: packages };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  const options = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"];
  return spawnSync("npm", options, { cwd: folder, stdio: "ignore" }).status === 0;
}

/** Runs a command line to its end and gives its output. */
function run(bin: string, home: string, args: readonly string[], input = ""): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args, "--home", home], {
    input,
    encoding: "utf8",
    env: plain,
  });
  if (status !== 0) throw new Error(`${args.join(" ")}: ${stderr}`);
  return stdout.trim();
}

/** Nothing of whoever runs this: neither conditions of sources nor another store. */
const plain = { PATH: process.env["PATH"] ?? "" };

async function serve(bin: string, home: string): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const child = spawn(
    process.execPath,
    [bin, "mcp", "--http", "127.0.0.1:0", "--allow-notes", "--quiet", "--home", home],
    {
      env: plain,
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  for await (const chunk of child.stdout) return { child, url: String(chunk).trim() };
  throw new Error("the server ended");
}

async function compare(folder: string): Promise<readonly string[]> {
  const { bin } = await installBundle(join(folder, "bundle"));
  const home = mkdtempSync(join(folder, "home-"));
  run(bin, home, ["new", "--key", key]);
  run(bin, home, ["append", key], drafts.map((draft) => JSON.stringify(draft)).join("\n"));
  const token = run(bin, home, ["token", "create", "peer"]);
  // What the first client would add, so that every client finds the same.
  run(bin, home, ["mcp", "--allow-notes"], noteRequest);
  const { child, url } = await serve(bin, home);
  const problems: string[] = [];
  const answers = new Map<string, string>();
  try {
    for (const name of Object.keys(packages))
      for (const generation of name.startsWith("v1") ? ["2025-11-25"] : ["2025-11-25", "2026-07-28"])
        for (const [transport, target] of [
          ["stdio", { command: process.execPath, args: [bin, "mcp", "--allow-notes", "--home", home] }],
          ["HTTP", { url, token }],
        ] as const) {
          const { status, stdout, stderr } = spawnSync(
            process.execPath,
            [join(folder, "client.ts"), name, generation, JSON.stringify(target)],
            { cwd: folder, encoding: "utf8", env: plain },
          );
          const label = `${name} ${generation} ${transport}`;
          if (status === 0) answers.set(label, stdout);
          else problems.push(`${label}: ${stderr.slice(0, 1000)}`);
        }
  } finally {
    child.kill("SIGTERM");
  }
  const [[firstLabel, first] = ["", ""], ...others] = answers;
  if (!first.includes("By kafka-rotate.") || first.includes("\\u001b"))
    problems.push(`${firstLabel}: ${first.slice(0, 1000)}`);
  for (const [label, answer] of others)
    if (!isDeepStrictEqual(parsed(answer), parsed(first)))
      problems.push(`${label} got other answers than ${firstLabel}`);
  process.stdout.write(
    `mcp: ${answers.size} clients, ${problems.length === 0 ? "the same answers" : `${problems.length} problems`}\n`,
  );
  return problems;
}

function parsed(answer: string): unknown {
  return JSON.parse(answer);
}

const note = { name: "add_note", arguments: { topic: "kafka", text: "on Mondays" } };
const noteRequest = `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: note })}\n`;

const ownFolder = process.argv[2] === undefined ? mkdtempSync(join(tmpdir(), "throughline-mcp-")) : null;
const folder = process.argv[2] ?? ownFolder ?? "";
try {
  if (install(folder)) {
    const problems = await compare(folder);
    for (const problem of problems) process.stdout.write(`${problem}\n`);
    process.exitCode = problems.length === 0 ? 0 : 1;
  } else process.stdout.write(`${skippedPrefix}the packages of the MCP SDK could not be installed\n`);
} finally {
  if (ownFolder !== null) rmSync(ownFolder, { recursive: true, force: true });
}
