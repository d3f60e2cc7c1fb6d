// What the programs beside it share: the ADK, and our packages by the first argument.
import { mkdtempSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import type { createAdkSessionService as CreateService } from "../../../packages/adapter-adk/src/index.ts";
import type { SessionStore } from "../../../packages/core/src/index.ts";
import type * as History from "../../../packages/history/src/index.ts";
import type * as Targets from "../../../packages/history/src/history-targets.ts";
import type { createSqliteStore as CreateSqlite } from "../../../packages/store-sqlite/src/index.ts";

const [repository = ""] = process.argv.slice(2);
export type Fields = Record<string, unknown>;
type Module = Record<string, unknown>;
const ours = async (path: string): Promise<Module> =>
  (await import(pathToFileURL(join(repository, "packages", path)).href)) as Module;
const peer = createRequire(import.meta.url);
const adk = (await import(pathToFileURL(peer.resolve("@google/adk").replace("/cjs/", "/esm/")).href)) as Module;

const { createAdkSessionService } = (await ours("adapter-adk/src/index.ts")) as unknown as {
  createAdkSessionService: typeof CreateService;
};
const { createSqliteStore } = (await ours("store-sqlite/src/index.ts")) as unknown as {
  createSqliteStore: typeof CreateSqlite;
};
export const history = (await ours("history/src/index.ts")) as unknown as typeof History;
export const targets = (await ours("history/src/history-targets.ts")) as unknown as typeof Targets;

/** A session of the ADK. */
export interface Session {
  readonly id: string;
  readonly state: Fields;
  readonly events: Fields[];
  readonly lastUpdateTime: number;
}
/** A session service of the ADK. */
export interface Service {
  createSession(request: Fields): Promise<Session>;
  getSession(request: Fields): Promise<Session | undefined>;
  getOrCreateSession(request: Fields): Promise<Session>;
  listSessions(
    request: Fields,
  ): Promise<{ readonly sessions: Session[]; readonly totalItems: number; readonly totalPages: number }>;
  deleteSession(request: Fields): Promise<void>;
  appendEvent(request: { readonly session: Session; readonly event: Fields }): Promise<Fields>;
}
type Make<Made> = new (...given: unknown[]) => Made;
interface Sdk {
  readonly InMemorySessionService: Make<Service>;
  readonly DatabaseSessionService: Make<Service>;
  readonly BaseSessionService: abstract new () => Service;
  readonly createEvent: (fields: Fields) => Fields;
  readonly LlmAgent: Make<unknown>;
  readonly Runner: Make<{ runAsync(request: Fields): AsyncIterable<Fields> }>;
  readonly BaseLlm: Make<object>;
  readonly FunctionTool: Make<unknown>;
}
/** What the ADK exports, as far as it is used here. */
export const sdk: Sdk = adk as unknown as Sdk;

/** Of the stores. */
export const folder: string = mkdtempSync(join(tmpdir(), "throughline-adk-run-"));
let count = 0;
export const newStore = (): SessionStore =>
  createSqliteStore({ path: join(folder, `${(count += 1)}.db`), create: true });
export const ofOurs = (store: SessionStore): Service => createAdkSessionService(sdk.BaseSessionService, { store });

/** An event of a user's. */
export const text = (words: string, fields: Fields = {}): Fields =>
  sdk.createEvent({
    invocationId: "i1",
    author: "user",
    content: { role: "user", parts: [{ text: words }] },
    ...fields,
  });

/** `done`, or the code or the words of an error. */
export const outcome = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "done",
    (error: unknown) => (error as { code?: string }).code ?? (error as Error).message,
  );
