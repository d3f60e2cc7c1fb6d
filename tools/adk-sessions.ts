// The session services of Google's ADK and ours: what each does, a run of its Runner, what 10,000 events cost. The ADK is installed
// into a folder of its own. node --conditions=@throughline/source tools/adk-sessions.ts [folder that keeps the packages] [events]
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { startPostgres } from "../packages/store-postgres/test/postgres-server.ts";
import { skippedPrefix } from "./long-suite.ts";
import { installPeers } from "./peer-packages.ts";

/** The driver is what the ADK's database service asks for. */
const packages = { "@google/adk": "2.0.0", "@mikro-orm/postgresql": "6.6.16" };

/** Runs one of the programs where the ADK is. */
function runs(program: string, argument: string): boolean {
  const args = ["--conditions=@throughline/source", join(folder, program), join(import.meta.dirname, ".."), argument];
  return spawnSync(process.execPath, args, { cwd: folder, stdio: "inherit" }).status === 0;
}

/** Runs the program of the README where the ADK is, with the sources of the packages. */
function runsReadme(): boolean {
  const packagesFolder = join(import.meta.dirname, "../packages");
  const page = readFileSync(join(packagesFolder, "adapter-adk/README.md"), "utf8");
  const program = /```js\n([^`]*(?:`(?!``)[^`]*)*)```/.exec(page)?.[1] ?? "";
  const placed = program.replaceAll(/"@throughline\/([a-z-]+)"/g, (_all, name: string) =>
    JSON.stringify(pathToFileURL(join(packagesFolder, name, "src/index.ts")).href),
  );
  rmSync(join(folder, "sessions.db"), { force: true });
  writeFileSync(join(folder, "readme.mjs"), placed);
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ["--conditions=@throughline/source", join(folder, "readme.mjs")],
    {
      cwd: folder,
      encoding: "utf8",
    },
  );
  const isRight = stdout.includes('[{"text":"It is 9:00."}]') && stdout.endsWith("4 events are stored.\n");
  process.stdout.write(
    isRight ? "ok   the program of the README\n" : `FAIL the program of the README\n${stdout}${stderr}`,
  );
  return isRight;
}

const [given = "", events = "10000"] = process.argv.slice(2);
const folder = given === "" ? mkdtempSync(join(tmpdir(), "throughline-adk-")) : given;
const postgres = await startPostgres();
try {
  const programs = ["services.ts", "runs.ts", "setup.ts"].map((name) => join(import.meta.dirname, "peers/adk", name));
  if (installPeers(folder, packages, programs)) {
    const url = "url" in postgres ? postgres.url : "";
    const passed = [runs("services.ts", url), runs("runs.ts", events), runsReadme()];
    process.exitCode = passed.includes(false) ? 1 : 0;
  } else process.stdout.write(`${skippedPrefix}the packages of the ADK could not be installed\n`);
} finally {
  if ("stop" in postgres) await postgres.stop();
  if (given === "") rmSync(folder, { recursive: true, force: true });
}
