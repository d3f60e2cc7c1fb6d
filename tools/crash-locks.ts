import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { lockChild, takeOver } from "../packages/store-jsonl/test/lock-takeover.ts";

/**
 * The full size of the lock suite: the owner of a lock is killed again and again while others wait for it.
 * node --conditions=@throughline/source tools/crash-locks.ts [--rounds 1000] [--contenders 8]
 */
if (import.meta.main) {
  const { values } = parseArgs({
    options: { rounds: { type: "string", default: "1000" }, contenders: { type: "string", default: "8" } },
  });
  process.env["NODE_OPTIONS"] = "--conditions=@throughline/source";
  const folder = mkdtempSync(join(tmpdir(), "throughline-locks-"));
  try {
    // One file starts in a tenth of the time that the sources take.
    const child = join(folder, "lock-child.mjs");
    const conditions = ["@throughline/source"];
    await build({
      entryPoints: [lockChild],
      outfile: child,
      bundle: true,
      platform: "node",
      format: "esm",
      conditions,
    });
    const { rounds, doubleOwners, latenciesMs } = await takeOver(
      join(folder, "lock"),
      Number(values.rounds),
      Number(values.contenders),
      child,
    );
    const sorted = latenciesMs.toSorted((one, other) => one - other);
    const at = (part: number): string => (sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(1);
    process.stdout.write(
      `takeovers after kill -9: ${rounds} rounds, ${values.contenders} contenders, ${doubleOwners} with two owners, ` +
        `next owner after ${at(0.5)} ms (99 %: ${at(0.99)}, longest: ${at(1)})\n`,
    );
    process.exitCode = doubleOwners === 0 && latenciesMs.length === rounds ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
