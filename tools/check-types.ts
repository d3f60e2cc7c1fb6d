import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { findFiles, repositoryRoot } from "./find-files.ts";

/** Where the key of the last check that passed lies. */
const keyFile = join(repositoryRoot, "node_modules/.cache/throughline/types.txt");

/** What the compiler does not compare itself before it trusts its notes: its options, its version, the installed types. */
function optionsKey(): string {
  const hash = createHash("sha256");
  const files = ["tsconfig.json", "tsconfig.base.json", "pnpm-lock.yaml"];
  const projects = findFiles(repositoryRoot, ".", ["tsconfig.json"]);
  for (const path of new Set([...files, ...projects]))
    hash.update(`${path}\n${readFileSync(join(repositoryRoot, path), "utf8")}\n`);
  return hash.digest("hex");
}

if (import.meta.main) {
  const key = optionsKey();
  const isKnown = existsSync(keyFile) && readFileSync(keyFile, "utf8") === key;
  const force = process.argv.includes("--force") || !isKnown ? ["--force"] : [];
  // A forced check that is killed leaves notes of two kinds, and no key.
  if (force.length > 0) rmSync(keyFile, { force: true });
  const { status, error } = spawnSync("tsc", ["-b", ...force], { cwd: repositoryRoot, stdio: "inherit" });
  if (error !== undefined) throw error;
  if (status !== null) {
    mkdirSync(dirname(keyFile), { recursive: true });
    writeFileSync(keyFile, key);
  }
  process.exitCode = status ?? 1;
}
