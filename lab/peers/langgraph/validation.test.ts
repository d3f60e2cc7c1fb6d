// The suite that LangGraph publishes for checkpointers, on each store. Copied into a folder that has the packages, and run there by
// the vitest that the suite brings. THROUGHLINE_ROOT is the checkout; THROUGHLINE_POSTGRES_URL an empty database.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

type Make = (options: object) => Store;

interface Store {
  close(): Promise<void>;
}

interface Suite {
  validate(initializer: object): void;
  deltaChannelHistoryTests(initializer: object): void;
}

const root = process.env["THROUGHLINE_ROOT"] ?? "";
const ours = async (path: string): Promise<Record<string, Make>> =>
  (await import(pathToFileURL(join(root, "packages", path, "src/index.ts")).href)) as Record<string, Make>;

const { createCheckpointSaver } = (await ours("adapter-langgraph")) as unknown as {
  createCheckpointSaver(options: { readonly store: Store }): object;
};
const { createMemoryStore } = await ours("store-memory");
const { createJsonlStore } = await ours("store-jsonl");
const { createSqliteStore } = await ours("store-sqlite");
const { createPostgresStore } = await ours("store-postgres");
const suiteName = "@langchain/langgraph-checkpoint-validation";
const { validate, deltaChannelHistoryTests } = (await import(suiteName)) as Suite;

const folders: string[] = [];
function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "throughline-validation-"));
  folders.push(made);
  return made;
}

let schemas = 0;
const stores: Readonly<Record<string, () => Store | undefined>> = {
  memory: () => createMemoryStore?.({}),
  jsonl: () => createJsonlStore?.({ root: folder() }),
  sqlite: () => createSqliteStore?.({ path: join(folder(), "sessions.db") }),
  postgres: () => {
    schemas += 1;
    const url = process.env["THROUGHLINE_POSTGRES_URL"];
    return createPostgresStore?.({ url, schema: `validation_${schemas}` });
  },
};

const wanted = (process.env["THROUGHLINE_STORES"] ?? "").split(",");
for (const name of wanted) {
  const opened = new Map<object, Store>();
  const initializer = {
    checkpointerName: `Throughline on ${name}`,
    createCheckpointer: (): object => {
      const store = stores[name]?.();
      if (store === undefined) throw new Error(`no store ${name}`);
      const saver = createCheckpointSaver({ store });
      opened.set(saver, store);
      return saver;
    },
    destroyCheckpointer: async (saver: object): Promise<void> => {
      await opened.get(saver)?.close();
      for (const made of folders.splice(0)) rmSync(made, { recursive: true, force: true });
    },
  };
  validate(initializer);
  deltaChannelHistoryTests(initializer);
}
