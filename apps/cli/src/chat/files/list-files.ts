import { execFile } from "node:child_process";
import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { terminalSafeLine } from "../../terminal-safe.ts";

const mostNames = 50_000;
const mostListBytes = 16_000_000;
const listWithinMs = 5000;

/** A folder's own configuration may name a program for git to run. The list needs none. */
const listing = ["-c", "core.fsmonitor=false", "--no-optional-locks", "ls-files", "-z", "--cached", "--others"];

/** Lists the files below a folder: those that git knows or would add, else all. Hidden ones are left out. */
export async function listFiles(folder: string): Promise<readonly string[]> {
  const { hasHiddenName } = await import("@throughline/tools/internal");
  const isShown = (name: string): boolean =>
    name !== "" && !name.includes('"') && terminalSafeLine(name) === name && !hasHiddenName(name.split("/"), "read");
  const names = (await namesOfGit(folder)) ?? (await namesBelow(folder, isShown));
  return names.filter(isShown).slice(0, mostNames).toSorted();
}

/** Returns null outside of a repository, and without git. */
async function namesOfGit(folder: string): Promise<readonly string[] | null> {
  try {
    const options = { cwd: folder, maxBuffer: mostListBytes, timeout: listWithinMs };
    const { stdout } = await promisify(execFile)("git", [...listing, "--exclude-standard"], options);
    return stdout.split("\0");
  } catch {
    return null;
  }
}

async function namesBelow(folder: string, isShown: (name: string) => boolean): Promise<readonly string[]> {
  const names: string[] = [];
  const folders = [""];
  for (let above = folders.pop(); above !== undefined && names.length < mostNames; above = folders.pop()) {
    const entries = await opendir(join(folder, above)).catch(() => null);
    if (entries === null) continue;
    for await (const entry of entries) {
      const name = above === "" ? entry.name : `${above}/${entry.name}`;
      if (entry.isDirectory() && entry.name !== "node_modules" && isShown(name)) folders.push(name);
      else if (entry.isFile()) names.push(name);
    }
  }
  return names;
}
