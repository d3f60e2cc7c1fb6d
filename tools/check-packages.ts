import { spawnSync } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { findPackages, repositoryRoot } from "./find-files.ts";

/** The checks of one built package: what npm would publish is complete, and its types resolve for every importer. */
function checksOf(folder: string): (readonly string[])[] {
  const publint = ["publint", "--strict", "--pack", "npm", folder];
  // An app has no types to offer: it is started, not imported.
  return folder.startsWith("apps/")
    ? [publint]
    : [publint, ["attw", "--pack", folder, "--profile", "esm-only", "--quiet"]];
}

let failed = 0;
for (const folder of findPackages(repositoryRoot)) {
  for (const [command = "", ...args] of checksOf(folder)) {
    const path = join(repositoryRoot, "node_modules/.bin", command);
    const { status } = spawnSync(path, args, { cwd: repositoryRoot, stdio: "inherit" });
    if (status !== 0) failed += 1;
  }
}
process.stdout.write(`packages: ${failed === 0 ? "all checks passed" : `${failed} checks failed`}\n`);
process.exitCode = failed === 0 ? 0 : 1;
