// Every method of the OpenAI SDK called directly and through the gateway, against the mock server of its own tests: the same
// results. The packages are installed into a folder of their own.
// node --conditions=@throughline/source lab/openai-surface.ts [folder that keeps the packages]
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { skippedPrefix } from "../tools/long-suite.ts";
import { installPeers } from "./peer-packages.ts";

const packages = { openai: "7.57.0", "@stdy/cli": "0.22.2", typescript: "5.9.3" };

const [given] = process.argv.slice(2);
const folder = given ?? mkdtempSync(join(tmpdir(), "throughline-openai-"));
const programs = ["surface.ts", "values.ts"].map((name) => join(import.meta.dirname, "peers/openai", name));
try {
  if (installPeers(folder, packages, programs)) {
    const args = ["--conditions=@throughline/source", join(folder, "surface.ts"), join(import.meta.dirname, "..")];
    const { status } = spawnSync(process.execPath, args, { cwd: folder, stdio: "inherit" });
    process.exitCode = status ?? 1;
  } else process.stdout.write(`${skippedPrefix}the SDK of OpenAI and the mock server could not be installed\n`);
} finally {
  if (given === undefined) rmSync(folder, { recursive: true, force: true });
}
