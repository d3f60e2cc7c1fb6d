// Spans of a session beside those of the AI SDK's own OpenTelemetry integration for the same run, and OTLP JSON beside what
// OpenTelemetry's serializer writes. The packages are installed into a folder of their own.
// node --conditions=@throughline/source tools/telemetry-names.ts [folder that keeps the packages]
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { skippedPrefix } from "./long-suite.ts";
import { installPeers } from "./peer-packages.ts";

const packages = {
  "@ai-sdk/otel": "1.0.173",
  "@opentelemetry/api": "1.9.1",
  "@opentelemetry/otlp-transformer": "0.223.1",
  "@opentelemetry/sdk-trace-base": "2.12.1",
  "@opentelemetry/semantic-conventions": "1.45.0",
  ai: "7.0.173",
};

const [given] = process.argv.slice(2);
const folder = given ?? mkdtempSync(join(tmpdir(), "throughline-telemetry-"));
try {
  if (installPeers(folder, packages, join(import.meta.dirname, "peers/telemetry/compare.ts"))) {
    const args = ["--conditions=@throughline/source", join(folder, "compare.ts"), join(import.meta.dirname, "..")];
    const { status } = spawnSync(process.execPath, args, { cwd: folder, stdio: "inherit" });
    process.exitCode = status ?? 1;
  } else process.stdout.write(`${skippedPrefix}the packages of OpenTelemetry and the AI SDK could not be installed\n`);
} finally {
  if (given === undefined) rmSync(folder, { recursive: true, force: true });
}
