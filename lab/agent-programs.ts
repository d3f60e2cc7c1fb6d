import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { installPeers } from "./peer-packages.ts";

/** The coding agents that the guides name, with the versions that were run. */
export const agentPackages: Readonly<Record<string, string>> = {
  "@anthropic-ai/claude-code": "2.1.197",
  "@openai/codex": "0.171.0",
  "@google/gemini-cli": "0.61.0",
  "opencode-ai": "1.18.33",
};

/** They put the agent's program in its place; without them two of the agents do not start. */
const installScripts = ["@anthropic-ai/claude-code/install.cjs", "opencode-ai/postinstall.mjs"];

/**
 * Installs the agents into a folder, from the npm registry. False without a registry.
 * @param more other packages, with their versions
 * @param packages the agents. All of them without it
 */
export function installAgents(
  folder: string,
  more: Readonly<Record<string, string>> = {},
  packages: Readonly<Record<string, string>> = agentPackages,
): boolean {
  if (!installPeers(folder, { ...packages, ...more }, [])) return false;
  for (const script of installScripts) {
    const path = join(folder, "node_modules", script);
    if (!existsSync(path)) continue;
    spawnSync(process.execPath, [path], { cwd: dirname(path), stdio: "inherit" });
  }
  return true;
}

/** The environment of a program that starts with an empty home, without anything of whoever runs this. */
export function emptyHome(folder: string): { readonly PATH: string; readonly HOME: string; readonly NO_COLOR: string } {
  const home = mkdtempSync(join(folder, "home-"));
  return { PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`, HOME: home, NO_COLOR: "1" };
}
