// Spans of a session beside those of the AI SDK's own OpenTelemetry integration for the same run, and OTLP JSON beside what
// OpenTelemetry's serializer writes. What `export --to otlp-json` prints is read into OpenTelemetry's protocol buffers and back. The
// packages are installed into a folder of their own.
// node --conditions=@throughline/source lab/telemetry-names.ts [folder that keeps the packages]
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { skippedPrefix } from "../tools/long-suite.ts";
import { installPeers } from "./peer-packages.ts";

const packages = {
  "@ai-sdk/otel": "1.0.173",
  "@opentelemetry/api": "1.9.1",
  "@opentelemetry/otlp-transformer": "0.223.1",
  "@opentelemetry/sdk-trace-base": "2.12.1",
  "@opentelemetry/semantic-conventions": "1.45.0",
  // The last line that has the protocol buffers: later ones write their bytes by hand.
  "otlp-proto": "npm:@opentelemetry/otlp-transformer@0.57.0",
  ai: "7.0.173",
};

const programs = ["compare.ts", "decode.ts"].map((name) => join(import.meta.dirname, "peers/telemetry", name));
const source = "--conditions=@throughline/source";
const repository = join(import.meta.dirname, "..");

/** A session with what is hard to write: a call that fails, times no calendar has, halves of characters, counts beyond 64 bits. */
const drafts: readonly object[] = [
  { type: "message", message: { role: "user", content: "Half a character: \ud83e; and \u0000." } },
  {
    type: "message",
    message: {
      role: "assistant",
      provider: "anthropic",
      model: "claude-opus-4-7",
      content: [{ type: "toolCall", id: "call_1", name: "read", arguments: { path: "a.txt" } }],
      usage: { input: 1e300, output: 0.5, cacheRead: 7, cacheWrite: 0 },
      stopReason: "toolUse",
    },
    timestamp: "1901-01-01T00:00:00.000Z",
  },
  {
    type: "message",
    message: { role: "toolResult", toolCallId: "call_1", toolName: "read", content: "no such file", isError: true },
    timestamp: "+275760-09-13T00:00:00.000Z",
  },
];

/** Runs the command line in a home of its own. */
function throughline(home: string, args: readonly string[], input = ""): string {
  const bin = join(repository, "apps/cli/bin/throughline.js");
  const { status, stdout, stderr } = spawnSync(process.execPath, [source, bin, ...args, "--home", home], {
    input,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${args.join(" ")}: ${stderr}`);
  return stdout;
}

/** What the command line exports of a turn of the facade, and of the drafts. */
function exported(home: string): string {
  const key = "agent:main:cli:direct:hard";
  throughline(home, ["chat", "--once", "Hello", "--model", "offline", "--key", "agent:main:cli:direct:hello"]);
  throughline(home, ["append", key], drafts.map((draft) => JSON.stringify(draft)).join("\n"));
  return ["agent:main:cli:direct:hello", key]
    .map((one) => throughline(home, ["export", one, "--to", "otlp-json", "--content"]))
    .join("");
}

const [given] = process.argv.slice(2);
const folder = given ?? mkdtempSync(join(tmpdir(), "throughline-telemetry-"));
try {
  if (installPeers(folder, packages, programs)) {
    const { status } = spawnSync(process.execPath, [source, join(folder, "compare.ts"), repository], {
      cwd: folder,
      stdio: "inherit",
    });
    const lines = exported(mkdtempSync(join(folder, "home-")));
    const decoded = spawnSync(process.execPath, [join(folder, "decode.ts")], {
      cwd: folder,
      input: lines,
      stdio: ["pipe", "inherit", "inherit"],
    });
    process.exitCode = status === 0 && decoded.status === 0 ? 0 : 1;
  } else process.stdout.write(`${skippedPrefix}the packages of OpenTelemetry and the AI SDK could not be installed\n`);
} finally {
  if (given === undefined) rmSync(folder, { recursive: true, force: true });
}
