import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { unexpectedErrors, warnings } from "./citus-log.ts";
import { citusPrograms, missingForCitus } from "./citus-programs.ts";
import { type CitusCluster, startCluster } from "../packages/store-postgres/test/citus-nodes.ts";
import { repositoryRoot } from "./find-files.ts";
import { skippedPrefix } from "./long-suite.ts";

/** A run of the suite logs fewer warnings than this on all nodes together. */
const mostWarnings = 100;

/**
 * Starts a coordinator and workers of an installed Citus on loopback, runs the cluster suite of the PostgreSQL store on
 * them, and stops them. With `--serve` it prints the URLs instead, and stops the nodes when its input ends.
 * node --conditions=@throughline/source tools/citus-cluster.ts [--programs FOLDER] [--workers 2] [--shards 8] [--serve]
 */
async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      programs: { type: "string" },
      workers: { type: "string", default: "2" },
      shards: { type: "string", default: "8" },
      serve: { type: "boolean", default: false },
    },
  });
  const binaries = citusPrograms(values.programs);
  const missing = missingForCitus(binaries);
  if (missing !== null) return skip(missing);
  const cluster = await startCluster({ binaries, workers: Number(values.workers), shards: Number(values.shards) });
  try {
    if (!values.serve) {
      const code = await runSuite(cluster.url);
      return Math.max(code, reportLogs(cluster));
    }
    process.stdout.write(`${JSON.stringify({ url: cluster.url, workerUrls: cluster.workerUrls })}\n`);
    process.stdin.resume();
    await Promise.race([once(process.stdin, "end"), once(process, "SIGINT"), once(process, "SIGTERM")]);
    return 0;
  } finally {
    await cluster.stop();
  }
}

function skip(reason: string): number {
  process.stdout.write(`${skippedPrefix}${reason.replaceAll(/\s+/g, " ").slice(-300)}\n`);
  return 0;
}

async function runSuite(url: string): Promise<number> {
  const args = ["run", "--project", "packages/store-postgres", "test/citus.test.ts"];
  const child = spawn(join(repositoryRoot, "node_modules/.bin/vitest"), args, {
    cwd: repositoryRoot,
    env: { ...process.env, THROUGHLINE_CITUS_URL: url },
    stdio: "inherit",
  });
  const [code] = (await once(child, "close")) as [number | null];
  return code ?? 1;
}

/** Fails for errors that no case provokes, and for logs that fill with warnings. */
function reportLogs(cluster: CitusCluster): number {
  const errors = unexpectedErrors(cluster.logs());
  const warned = warnings(cluster.logs());
  for (const { text, count } of errors) process.stdout.write(`not expected, ${count} times: ${text}\n`);
  for (const { text, count } of warned) process.stdout.write(`warning, ${count} times: ${text}\n`);
  const most = warned.reduce((sum, { count }) => sum + count, 0);
  process.stdout.write(
    `the nodes logged ${errors.length} kinds of errors that no case provokes, and ${most} warnings\n`,
  );
  return errors.length === 0 && most <= mostWarnings ? 0 : 1;
}

if (import.meta.main) process.exitCode = await main();
