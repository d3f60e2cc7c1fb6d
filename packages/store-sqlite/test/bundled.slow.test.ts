import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { build, type Format } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const packageRoot = join(import.meta.dirname, "..");

/** Writes more than 8 MB, from where on the file is read in a thread; backs it up, and checks the copy. */
const program = `
import { createSqliteStore } from "@throughline/store-sqlite";
async function main([folder]) {
  const ref = { namespace: "", agentId: "main", key: "agent:main:one" };
  const path = folder + "/store.db";
  const store = createSqliteStore({ path });
  await store.save(ref, { sessionId: "one" }, { ifRevision: null });
  for (let turn = 0; turn < 20; turn++)
    await store.append(ref, [{ type: "message", message: { role: "user", content: String(turn).repeat(600_000) } }]);
  const { sizeBytes } = await store.maintenance.backup(folder + "/copy.db");
  await store.close();
  const copy = createSqliteStore({ path: folder + "/copy.db", create: false });
  const findings = await Array.fromAsync(copy.maintenance.verify({ full: true }));
  await copy.close();
  console.log(JSON.stringify({ sizeBytes, findings: findings.length }));
}
void main(process.argv.slice(2));
`;

let folder: string;
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "throughline-bundled-")));
  mkdirSync(join(folder, "node_modules"));
  // The driver is the one package that no bundle can hold.
  const driver = dirname(createRequire(join(packageRoot, "package.json")).resolve("better-sqlite3/package.json"));
  symlinkSync(driver, join(folder, "node_modules/better-sqlite3"));
  mkdirSync(join(folder, "node_modules/@throughline"));
  symlinkSync(packageRoot, join(folder, "node_modules/@throughline/store-sqlite"));
  writeFileSync(join(folder, "program.ts"), program);
});
afterAll(() => rmSync(folder, { recursive: true }));

async function bundle(entry: string, name: string, format: Format): Promise<string> {
  const outfile = join(folder, name);
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    format,
    platform: "node",
    target: "node22.18",
    conditions: ["@throughline/source"],
    external: ["better-sqlite3"],
    logLevel: "error",
    // What the bundler says of `import.meta` in the older format is what is tried here.
    logOverride: { "empty-import-meta": "silent" },
  });
  return outfile;
}

function runIn(cwd: string, args: readonly string[]): unknown {
  return JSON.parse(execFileSync(process.execPath, args, { cwd, encoding: "utf8" }));
}

describe("a program with the store in one file", () => {
  it.each([
    ["esm", "program.mjs"],
    ["cjs", "program.cjs"],
  ] as const)(
    "of the format %s backs up and checks a store of 12 MB, started from another folder",
    async (format, name) => {
      const place = join(folder, `store-${format}`);
      mkdirSync(place);
      const outfile = await bundle(join(folder, "program.ts"), name, format);
      const result = runIn(tmpdir(), [outfile, place]) as { readonly sizeBytes: number; readonly findings: number };
      expect(result.findings).toBe(0);
      expect(result.sizeBytes).toBeGreaterThan(12_000_000);
    },
  );
});
