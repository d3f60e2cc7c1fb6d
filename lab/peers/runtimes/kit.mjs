// The conformance kit on one store, from installed packages, on whatever runtime starts it. Prints one line of JSON.
// node kit.mjs memory|jsonl|sqlite|postgres [POSTGRES_URL]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { runConformance } from "@throughline/store-conformance";

const [name = "", url = ""] = process.argv.slice(2);

/** A store on data of its own, opened as often as a case asks for. */
function underTest(create, remove) {
  const handles = [create()];
  const another = async () => {
    handles.push(create());
    return handles.at(-1);
  };
  return {
    store: handles[0],
    another,
    reopen: async () => {
      await handles.at(-1).close();
      return another();
    },
    dispose: async () => {
      for (const handle of handles) await handle.close();
      await remove();
    },
  };
}

async function inFolder(create) {
  const folder = mkdtempSync(join(tmpdir(), "throughline-kit-"));
  return underTest(
    () => create(folder),
    () => rmSync(folder, { recursive: true, force: true }),
  );
}

const opens = {
  memory: async () => {
    const { createMemoryStore } = await import("@throughline/store-memory");
    const { createMemoryData } = await import("@throughline/store-memory/internal");
    const data = createMemoryData();
    const { store, reopen, dispose } = underTest(
      () => createMemoryStore({ data }),
      () => {},
    );
    return { store, reopen, dispose };
  },
  jsonl: async () => {
    const { createJsonlStore } = await import("@throughline/store-jsonl");
    return inFolder((root) => createJsonlStore({ root }));
  },
  sqlite: async () => {
    const { createSqliteStore } = await import("@throughline/store-sqlite");
    return inFolder((folder) => createSqliteStore({ path: join(folder, "store.db") }));
  },
  postgres: async () => {
    const { createPostgresStore } = await import("@throughline/store-postgres");
    const schema = `kit_${crypto.randomUUID().replaceAll("-", "")}`;
    return underTest(
      () => createPostgresStore({ url, schema }),
      () => {},
    );
  },
};

const open = opens[name];
if (open === undefined) throw new Error(`there is no store "${name}"`);
const results = await runConformance({ open });
const failures = results.filter(({ passed, skipped }) => !passed && skipped === null);
const passed = results.filter((result) => result.passed).length;
const failed = failures.map(({ id, error }) => `${id}: ${String(error).slice(0, 300)}`);
process.stdout.write(`${JSON.stringify({ passed, skipped: results.length - passed - failed.length, failed })}\n`);
process.exitCode = failed.length === 0 ? 0 : 1;
