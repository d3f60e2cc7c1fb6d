import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Embedder, sessionRef, type SessionRef, type SessionStore, type VectorsFacet } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { openaiCompatible } from "@throughline/embedders";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createMemorySearchTool, type MemoryHit } from "../../src/workspace/memory-search-tool.ts";
import { MeaningIndex, type MeaningIndexOptions } from "../../src/meaning/meaning-index.ts";
import { createTokenBudget } from "../../src/meaning/token-budget.ts";

export const folder: string = mkdtempSync(join(tmpdir(), "throughline-meaning-"));
export const removeFolder = (): void => rmSync(folder, { recursive: true, force: true });

let stores = 0;
export const storeKinds: readonly (readonly [string, () => SessionStore])[] = [
  ["memory", () => createMemoryStore()],
  ["sqlite", () => createSqliteStore({ path: join(folder, `${++stores}.db`) })],
];

export function refOf(name: string, agentId = "main", namespace = ""): SessionRef {
  return { ...sessionRef({ key: `agent:${agentId}:${name}` }), namespace };
}

export const message = (
  role: string,
  content: unknown,
): { type: "message"; message: { role: string; content: unknown } } => ({
  type: "message",
  message: { role, content },
});

/** Creates a session in which a person asks and an assistant answers. */
export async function converse(
  store: SessionStore,
  ref: SessionRef,
  turns: readonly (readonly [string, string])[],
): Promise<void> {
  if ((await store.load(ref)) === null)
    await store.save(ref, { sessionId: `${ref.agentId}-${ref.key.split(":").at(-1) ?? ""}` }, { ifRevision: null });
  await store.append(
    ref,
    turns.flatMap(([asked, answered]) => [message("user", asked), message("assistant", answered)]),
  );
}

export function embedderAt(url: string, model = "test-model"): Embedder {
  return openaiCompatible({ baseUrl: `${url}/v1`, model, dimensions: 64 });
}

export function vectorsOf({ vectors }: SessionStore): VectorsFacet {
  if (vectors === undefined) throw new Error("the store has vectors");
  return vectors;
}

export const withoutLimit: MeaningIndexOptions["budget"] = { take: () => true };

export function indexOver(
  store: SessionStore,
  embedder: Embedder,
  more: Partial<MeaningIndexOptions> = {},
): MeaningIndex {
  const scope = { namespace: "", agentId: "main" };
  return new MeaningIndex({ store, vectors: vectorsOf(store), scope, embedder, budget: withoutLimit, ...more });
}

export async function filled(index: MeaningIndex): Promise<number> {
  let left = 0;
  for await (const now of index.fill()) left = now;
  return left;
}

export function budgetOf(maxTokensPerDay: number): MeaningIndexOptions["budget"] {
  let kept: unknown = null;
  return createTokenBudget({ maxTokensPerDay, clock: systemClock, read: () => kept, write: (spent) => (kept = spent) });
}

export interface Found {
  readonly places: readonly string[];
  readonly isWhole: boolean;
  readonly content: string;
}

interface AskOptions {
  readonly ref?: SessionRef;
  readonly reach?: "agent" | "self";
  readonly limit?: number;
}

/** Asks `memory_search` as an agent would. */
export async function askFor(
  store: SessionStore,
  meaning: MeaningIndex | undefined,
  query: string,
  { ref = refOf("asking"), reach = "agent", limit = 5 }: AskOptions = {},
): Promise<Found> {
  const tool = createMemorySearchTool({ root: folder, places: ["none"], store, sessions: reach, meaning });
  const result = await tool.run({ query, limit }, { signal: new AbortController().signal, callId: "c", ref });
  if (typeof result === "string") throw new Error("a result with details was expected");
  const { hits, isWhole } = result.details as { readonly hits: readonly MemoryHit[]; readonly isWhole: boolean };
  const places = hits.map((hit) =>
    hit.kind === "file" ? hit.path : `${hit.key.split(":").at(-1) ?? ""}#${hit.firstSeq}`,
  );
  return { places, isWhole, content: typeof result.content === "string" ? result.content : "" };
}
