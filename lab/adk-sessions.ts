// The session services of Google's ADK and ours: what each does, a run of its Runner, what 10,000 events cost. The ADK is installed
// into a folder of its own. node --conditions=@throughline/source lab/adk-sessions.ts [folder that keeps the packages] [events]
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { startPostgres } from "../packages/store-postgres/test/postgres-server.ts";
import { skippedPrefix } from "../tools/long-suite.ts";
import { installPeers } from "./peer-packages.ts";

/** The driver is what the ADK's database service asks for. */
const packages = { "@google/adk": "2.0.0", "@mikro-orm/postgresql": "6.6.16" };

/** Runs one of the programs where the ADK is. */
function runs(program: string, argument: string): boolean {
  const args = ["--conditions=@throughline/source", join(folder, program), join(import.meta.dirname, ".."), argument];
  return spawnSync(process.execPath, args, { cwd: folder, stdio: "inherit" }).status === 0;
}

/** Runs a program for people where the ADK is, with the sources of our packages. */
function prints(name: string, program: string, expected: string): boolean {
  const placed = program.replaceAll(/"@throughline\/([a-z-]+)"/g, (_all, packageName: string) =>
    JSON.stringify(pathToFileURL(join(packagesFolder, packageName, "src/index.ts")).href),
  );
  writeFileSync(join(folder, "program.mjs"), placed);
  const args = ["--conditions=@throughline/source", join(folder, "program.mjs")];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
  const isRight = stdout.endsWith(expected);
  process.stdout.write(isRight ? `ok   ${name}\n` : `FAIL ${name}\n${stdout}${stderr}`);
  return isRight;
}

const packagesFolder = join(import.meta.dirname, "../packages");
const page = readFileSync(join(packagesFolder, "adapter-adk/README.md"), "utf8");
const readme = page.split("```js\n")[1]?.split("```\n")[0] ?? "";
const example = readFileSync(join(packagesFolder, "../examples/adk/main.mjs"), "utf8");
const [given = "", events = "10000"] = process.argv.slice(2);
const folder = given === "" ? mkdtempSync(join(tmpdir(), "throughline-adk-")) : given;
const postgres = await startPostgres();
try {
  const programs = ["services.ts", "runs.ts", "setup.ts"].map((name) => join(import.meta.dirname, "peers/adk", name));
  if (installPeers(folder, packages, programs)) {
    const url = "url" in postgres ? postgres.url : "";
    rmSync(join(folder, "sessions.db"), { force: true });
    const passed = [
      runs("services.ts", url),
      runs("runs.ts", events),
      prints("the program of the README", readme, '[{"text":"It is 9:00."}]\n4 events are stored.\n'),
      prints("the example continues it", example, "It is nine. I was sent 7 contents.\n8 events are stored.\n"),
    ];
    process.exitCode = passed.includes(false) ? 1 : 0;
  } else process.stdout.write(`${skippedPrefix}the packages of the ADK could not be installed\n`);
} finally {
  if ("stop" in postgres) await postgres.stop();
  if (given === "") rmSync(folder, { recursive: true, force: true });
}
