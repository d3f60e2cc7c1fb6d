// The quick tests of the package that this is called in, for `turbo run test`.
import { spawnSync } from "node:child_process";
import { relative, sep } from "node:path";
import process from "node:process";
import { repositoryRoot } from "./find-files.ts";
import { withoutSlowTests } from "./test-tiers.ts";

const project = relative(repositoryRoot, process.cwd()).split(sep).join("/");
const args = ["run", "--project", project, "--passWithNoTests", ...withoutSlowTests];
const { status, error } = spawnSync("vitest", args, { cwd: repositoryRoot, stdio: "inherit" });
if (error !== undefined) throw error;
process.exitCode = status ?? 1;
