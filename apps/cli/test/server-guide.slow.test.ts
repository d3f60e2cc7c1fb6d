import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { cleanEnvironment, start, temporaryDirectory } from "./harness.ts";

const guide = readFileSync(join(import.meta.dirname, "../../../docs/guides/run-the-server.md"), "utf8");
const hasPython = spawnSync("python3", ["--version"]).status === 0;

// The shell of the guide is run by tools/check-docs.ts, as that of every page.
it.skipIf(!hasPython)("the Python of the guide has a whole turn with a server", async () => {
  const program = /```python\n([^]*?)```/.exec(guide)?.[1] ?? "";
  const directory = temporaryDirectory();
  const child = start(directory.path, ["serve", "--port", "0"]);
  let stdout = "";
  child.stdout.on("data", (chunk) => (stdout += String(chunk)));
  await expect.poll(() => stdout).toContain("\n");
  const env = cleanEnvironment(directory.path);
  const run = spawnSync("python3", ["-"], { input: program, env, encoding: "utf8" });
  expect([run.stderr, run.stdout]).toEqual(["", "2 user\n3 assistant\n"]);
  child.kill("SIGTERM");
  await new Promise((resolve) => child.on("close", resolve));
  directory.remove();
});
