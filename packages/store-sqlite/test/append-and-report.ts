import process from "node:process";
import { createSqliteStore } from "@throughline/store-sqlite";
import { refOf, say } from "./append-drafts.ts";

// Prints `ok` or the code of the error for each step on the store of the first argument.
const store = createSqliteStore({ path: process.argv[2] ?? "" });
const step = async (run: () => Promise<unknown>): Promise<void> => {
  const code = await run().then(
    () => "ok",
    (error: unknown) => String((error as { readonly code?: unknown }).code),
  );
  process.stdout.write(`${code}\n`);
};
await step(() => store.load(refOf("a")));
for (let index = 0; index < 20; index++) await step(() => store.append(refOf("a"), [say(`text ${index}`)]));
await step(() => store.close());
