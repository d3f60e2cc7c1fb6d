// One log through the adapters of several frameworks, in every order of two. The frameworks are installed into a folder of their
// own. node --conditions=@throughline/source lab/adapter-pairs.ts [folder that keeps the packages]
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { skippedPrefix } from "../tools/long-suite.ts";
import { installPeers } from "./peer-packages.ts";

/** The newest versions that the adapters state, and the oldest of the AI SDK. */
const packages = {
  "@openai/agents": "0.20.0",
  "@openai/agents-core": "0.20.0",
  ai: "7.0.173",
  ai6: "npm:ai@6.0.326",
  "@google/adk": "2.0.0",
  "@anthropic-ai/claude-agent-sdk": "0.3.330",
  "@langchain/core": "1.3.4",
  "@langchain/langgraph": "1.7.3",
};

const ownFolder = process.argv[2] === undefined ? mkdtempSync(join(tmpdir(), "throughline-adapters-")) : null;
const folder = process.argv[2] ?? ownFolder ?? "";
try {
  if (
    installPeers(
      folder,
      packages,
      ["pairs.ts", "claude.ts", "langgraph.ts"].map((name) => join(import.meta.dirname, "peers/adapters", name)),
    )
  ) {
    const args = ["--conditions=@throughline/source", join(folder, "pairs.ts"), join(import.meta.dirname, "..")];
    const { status } = spawnSync(process.execPath, args, { cwd: folder, stdio: "inherit" });
    process.exitCode = status ?? 1;
  } else process.stdout.write(`${skippedPrefix}the packages of the frameworks could not be installed\n`);
} finally {
  if (ownFolder !== null) rmSync(ownFolder, { recursive: true, force: true });
}
