import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { setTimeout as wait } from "node:timers/promises";
import Database from "better-sqlite3";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { applicationId, schemaSteps } from "../src/schema.ts";
import { createFaultyDriver } from "./faulty-driver.ts";
import { testFolder } from "./test-folder.ts";

const schemaOne = schemaSteps[0]?.sql ?? "";

/** A store of the first version beside an older backup of it: what was written since is a row of its own. */
function storeOfVersionOne(path: string, padBytes = 0): void {
  const database = new Database(path);
  database.pragma("page_size = 8192");
  database.exec(schemaOne);
  const insert = database.prepare("INSERT INTO store_info VALUES (?, ?)");
  insert.run("schema 1", createHash("sha256").update(schemaOne).digest("hex"));
  database.pragma(`application_id = ${applicationId}`);
  database.pragma("user_version = 1");
  copyFileSync(path, `${path}.old.auto.backup`);
  insert.run("newer", "yes");
  for (let each = 0; each * 1_000_000 < padBytes; each++) insert.run(`pad ${each}`, "p".repeat(1_000_000));
  database.close();
}

function newerIn(path: string): unknown {
  const database = new Database(path, { readonly: true });
  try {
    return database.prepare("SELECT value FROM store_info WHERE name = 'newer'").pluck().get();
  } finally {
    database.close();
  }
}

/** Opens the store; gives the codes of what was told, and how it ended. */
async function opened(options: Parameters<typeof createSqliteStore>[0]): Promise<string[]> {
  const told: string[] = [];
  const store = createSqliteStore({
    lockTimeoutMs: 2000,
    ...options,
    onEvent: (event) => void (event.name === "finding" && told.push(event.finding.code)),
  });
  const outcome = await store.list().then(
    () => "open",
    (error: unknown) => (error as { readonly code: string }).code,
  );
  await store.close();
  return [...told, outcome];
}

describe("the copy before a migration", () => {
  it.each([
    ["zeros where the copy is written", "part", Buffer.alloc(3 * 8192)],
    ["text where the copy is written", "part", Buffer.from("partial")],
    ["zeros under the number of this process, as they were named before", String(process.pid), Buffer.alloc(3 * 8192)],
  ])(
    "is made anew over what a killed process has left, and the store stays what it is: %s",
    async (_what, ending, left) => {
      const path = join(testFolder(), "store.db");
      storeOfVersionOne(path);
      writeFileSync(`${path}.v1.backup.${ending}`, left);
      writeFileSync(`${path}.v1.backup.under-way`, "");
      expect(await opened({ path })).toEqual(["open"]);
      expect([newerIn(path), newerIn(`${path}.v1.backup`)]).toEqual(["yes", "yes"]);
      expect(readdirSync(dirname(path)).filter((name) => /part|under-way|damaged/.test(name))).toEqual([]);
    },
  );

  it("that cannot be written is told as such: the store is not rolled back to an older backup for it", async () => {
    const path = join(testFolder(), "store.db");
    storeOfVersionOne(path);
    const { driver, failNext } = createFaultyDriver();
    for (const code of ["SQLITE_CORRUPT", "SQLITE_NOTADB"]) {
      failNext("VACUUM INTO ?", code);
      expect(await opened({ path, driver })).toEqual(["STORE_IO"]);
      expect(newerIn(path)).toBe("yes");
    }
    expect(readdirSync(dirname(path)).toSorted()).toEqual(["store.db", "store.db.old.auto.backup"]);
    expect(await opened({ path, driver })).toEqual(["open"]);
    expect(newerIn(path)).toBe("yes");
  });

  it("is begun anew after kill -9 in the middle of it", { timeout: 60_000 }, async () => {
    const path = join(testFolder(), "store.db");
    storeOfVersionOne(path, 60_000_000);
    const program = `
      const { createSqliteStore } = await import("@throughline/store-sqlite");
      await createSqliteStore({ path: ${JSON.stringify(path)} }).list();`;
    const child = spawn(process.execPath, ["--conditions=@throughline/source", "--input-type=module", "-e", program], {
      cwd: import.meta.dirname,
      stdio: ["ignore", "inherit", "inherit"],
    });
    const ended = new Promise<NodeJS.Signals | null>((resolve) =>
      child.once("close", (_code, signal) => resolve(signal)),
    );
    while (!existsSync(`${path}.v1.backup.part`)) await wait(1);
    child.kill("SIGKILL");
    expect([await ended, existsSync(`${path}.v1.backup`)]).toEqual(["SIGKILL", false]);
    expect(await opened({ path })).toEqual(["open"]);
    expect([newerIn(path), newerIn(`${path}.v1.backup`)]).toEqual(["yes", "yes"]);
    expect(readdirSync(dirname(path)).filter((name) => /part|under-way|damaged/.test(name))).toEqual([]);
  });
});
