import process from "node:process";
import { createInterface } from "node:readline";
import { sessionRef, ThroughlineError, type SessionRef, type SessionStore } from "../packages/core/src/index.ts";
import { buildContext } from "../packages/history/src/build-context.ts";
import { renderAnthropic } from "../packages/history/src/render-anthropic.ts";
import { validateAnthropic } from "../packages/history/src/validate-anthropic.ts";
import { createJsonlStore } from "../packages/store-jsonl/src/index.ts";
import { createPostgresStore } from "../packages/store-postgres/src/index.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";

// A store that does what lines of JSON on stdin say, and answers each with a line. It is copied into a checkout of an
// older commit and runs there, so it may use only what that commit has too.

type Arguments = readonly never[];
type Method = (...args: Arguments) => Promise<unknown>;
type Operation = (store: SessionStore, ...args: Arguments) => Promise<unknown>;

const records = async (store: SessionStore, ref: SessionRef): Promise<readonly unknown[]> => {
  const pages = await Array.fromAsync(store.read(ref, { payload: "source" }));
  return pages.flatMap((page) => page.records);
};

/** What every store is asked besides its own operations. */
const operations: Readonly<Record<string, Operation>> = {
  records,
  /** The messages for Anthropic, and what its rules say of them. */
  async context(store, ref: SessionRef) {
    const pages = await Array.fromAsync(store.read(ref));
    const context = buildContext(pages.flatMap((page) => page.records));
    const { messages } = renderAnthropic(context);
    return { messages, violations: messages.length === 0 ? [] : validateAnthropic(messages) };
  },
  verify: async (store) => Array.fromAsync(store.maintenance?.verify() ?? []),
  partials: (store, name: "write" | "read" | "remove", ...args: Arguments) => {
    const { partials } = store as unknown as { readonly partials?: Readonly<Record<string, Method>> };
    return partials?.[name]?.(...args) ?? Promise.resolve("no such facet");
  },
};

function open(scheme: string, place: string, schema: string): SessionStore {
  if (scheme === "jsonl") return createJsonlStore({ root: place });
  if (scheme === "sqlite") return createSqliteStore({ path: place });
  return createPostgresStore({ url: place, schema });
}

/** Keys stand for references, so that what is asked can be read. */
const withRefs = (args: readonly unknown[]): Arguments =>
  args.map((arg) => (typeof arg === "string" && arg.startsWith("agent:") ? sessionRef({ key: arg }) : arg)) as never[];

const [scheme = "", place = "", schema = ""] = process.argv.slice(2);
const store = open(scheme, place, schema);
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...args] = JSON.parse(line) as [string, ...unknown[]];
  let answer: unknown;
  try {
    const own = operations[name];
    const given = withRefs(args);
    const methods = store as unknown as Readonly<Record<string, Method>>;
    answer = { value: (await (own === undefined ? methods[name]?.(...given) : own(store, ...given))) ?? null };
  } catch (error) {
    answer = { error: error instanceof ThroughlineError ? error.code : String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await store.close();
