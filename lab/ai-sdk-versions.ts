// The tests of the adapter for the AI SDK on the newest version that it supports; the workspace has the oldest one.
// node --conditions=@throughline/source lab/ai-sdk-versions.ts [folder that keeps the package]
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { skippedPrefix } from "../tools/long-suite.ts";
import { installPeers } from "./peer-packages.ts";

const packages = { ai: "7.0.173" };

const ownFolder = process.argv[2] === undefined ? mkdtempSync(join(tmpdir(), "throughline-ai-sdk-")) : null;
const folder = process.argv[2] ?? ownFolder ?? "";
const root = join(import.meta.dirname, "..");
try {
  if (installPeers(folder, packages, [])) {
    const { version } = JSON.parse(readFileSync(join(folder, "node_modules/ai/package.json"), "utf8")) as {
      readonly version: string;
    };
    if (version !== packages.ai) throw new Error(`The folder has ai ${version}, not ${packages.ai}.`);
    const { status } = spawnSync(
      process.execPath,
      [join(root, "node_modules/vitest/vitest.mjs"), "run", "--project", "packages/adapter-ai-sdk"],
      { cwd: root, stdio: "inherit", env: { ...process.env, THROUGHLINE_AI_SDK: folder } },
    );
    process.exitCode = status ?? 1;
  } else process.stdout.write(`${skippedPrefix}the package ai could not be installed\n`);
} finally {
  if (ownFolder !== null) rmSync(ownFolder, { recursive: true, force: true });
}
