// LangGraph's own validation suite for checkpointers on each store, and how a database grows beside LangGraph's SqliteSaver. The
// packages are installed into a folder of their own.
// node --conditions=@throughline/source lab/langgraph-saver.ts [--stores memory,jsonl,sqlite,postgres] [--turns 100,300] [folder]
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { startPostgres } from "../packages/store-postgres/test/postgres-server.ts";
import { skippedPrefix } from "../tools/long-suite.ts";
import { installPeers } from "./peer-packages.ts";

const packages = {
  "@langchain/core": "1.3.4",
  "@langchain/langgraph": "1.7.3",
  "@langchain/langgraph-checkpoint": "1.2.2",
  "@langchain/langgraph-checkpoint-sqlite": "1.0.4",
  "@langchain/langgraph-checkpoint-validation": "1.1.1",
  zod: "4.2.1",
};
/** Of the validation suite, and of its part on delta channels. */
const casesOfAStore = 718 + 8;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    stores: { type: "string", default: "memory,jsonl,sqlite,postgres" },
    turns: { type: "string", default: "100,200,400" },
  },
});
const [given] = positionals;
const folder = given ?? mkdtempSync(join(tmpdir(), "throughline-langgraph-saver-"));
const root = join(import.meta.dirname, "..");

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
}

/** False when a case failed or was skipped. */
function validated(stores: readonly string[], url: string): boolean {
  copyFileSync(join(import.meta.dirname, "peers/langgraph/validation.test.ts"), join(folder, "validation.test.ts"));
  const conditions = JSON.stringify(["@throughline/source", "module", "node", "development|production"]);
  const config = `export default { ssr: { resolve: { conditions: ${conditions}, externalConditions: ["@throughline/source", "node"] } } };`;
  writeFileSync(join(folder, "vitest.config.mjs"), config);
  const report = join(folder, "report.json");
  const options = [
    "--globals",
    "--reporter=json",
    `--outputFile=${report}`,
    "--testTimeout=60000",
    "--hookTimeout=60000",
  ];
  const args = ["--conditions=@throughline/source", join(folder, "node_modules/vitest/vitest.mjs"), "run", ...options];
  const env = {
    ...process.env,
    NODE_OPTIONS: "--conditions=@throughline/source",
    THROUGHLINE_ROOT: root,
    THROUGHLINE_POSTGRES_URL: url,
    THROUGHLINE_STORES: stores.join(","),
  };
  const { stderr } = spawnSync(process.execPath, args, { cwd: folder, env, encoding: "utf8" });
  const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(report, "utf8")) as Report;
  const expected = casesOfAStore * stores.length;
  process.stdout.write(
    `validation: ${numPassedTests} of ${expected} cases on ${stores.join(", ")}, ${numFailedTests} failed, ${numPendingTests} skipped\n`,
  );
  if (numFailedTests > 0) process.stderr.write(stderr.slice(0, 4000));
  return numPassedTests === expected && numFailedTests === 0 && numPendingTests === 0;
}

function grown(): boolean {
  copyFileSync(join(import.meta.dirname, "peers/langgraph/growth.ts"), join(folder, "growth.ts"));
  const args = ["--conditions=@throughline/source", join(folder, "growth.ts"), root, values.turns];
  return spawnSync(process.execPath, args, { cwd: folder, stdio: "inherit" }).status === 0;
}

const wanted = values.stores.split(",");
const server = wanted.includes("postgres") ? await startPostgres() : null;
try {
  const overrides = { "better-sqlite3": "13.2.0" };
  if (installPeers(folder, packages, join(import.meta.dirname, "peers/langgraph/growth.ts"), overrides)) {
    const url = server !== null && "url" in server ? server.url : "";
    const stores = wanted.filter((name) => name !== "postgres" || url !== "");
    if (stores.length < wanted.length)
      process.stdout.write("PostgreSQL cannot be started here: its cases are left out\n");
    const [isValid, isLinear] = [validated(stores, url), grown()];
    process.exitCode = isValid && isLinear ? 0 : 1;
  } else process.stdout.write(`${skippedPrefix}the packages of LangGraph could not be installed\n`);
} finally {
  if (server !== null && "stop" in server) await server.stop();
  if (given === undefined) rmSync(folder, { recursive: true, force: true });
}
