import { resolve } from "node:path";
import { sessionRef, ThroughlineError } from "@throughline/core";
import type { SessionRef, SessionStore } from "@throughline/core";
import type { MemoryHit } from "@throughline/tools/internal";
import { memorySearchTool, openMeaning, workspaceOf } from "@throughline/agent/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { blocksText, resolveSession } from "@throughline/core/internal";

interface MemoryOptions {
  readonly limit?: number;
  readonly session?: string;
  readonly workspace?: string;
}

interface SearchDetails {
  readonly hits?: readonly MemoryHit[];
  readonly searched?: { readonly files: number; readonly records: number };
  /** Lists what was not compared. */
  readonly notes?: readonly string[];
  readonly isWhole?: boolean;
}

const usualHits = 5;

/** Runs `memory search` or `memory index`. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const [action, ...words] = input.arguments;
  if (action === "index" && words.length === 0) return indexPast(context);
  if (action !== "search")
    throw usageError(`memory has no action ${JSON.stringify(action)}; use: memory search QUERY, or memory index.`);
  return search(context, words, input.options as MemoryOptions);
}

/** Embeds what has no vectors yet, after it reports what that sends to whom. */
async function indexPast(context: CommandContext): Promise<number> {
  const { output, signal } = context;
  const store = await context.openStore("write");
  let reason = "memory.search.embedder names no embedder.";
  const meaning = await openMeaning(context, store, { onNote: (message) => (reason = message) });
  if (meaning === null)
    throw new ThroughlineError("CONFIG_INVALID", `Search by meaning is off: ${reason}`, {
      remedy:
        "Set memory.search.embedder in the configuration, and see docs/guides/search-by-meaning.md for what is sent.",
    });
  const { records, tokens } = await meaning.estimate(signal);
  output.note(
    `${counted(records, "record")} without vectors: about ${tokens} tokens are sent to ${meaning.embedderId}.`,
  );
  let left = records;
  for await (left of meaning.fill(signal)) output.progress(`${left} records left`);
  if (output.isJson) await output.object({ kind: "memory-index", embedder: meaning.embedderId, records, tokens, left });
  else await output.line(`${records - left} records have vectors now; ${left} have none.`);
  if (left > 0 && !output.isJson)
    output.note("The tokens of the day are used up, or a turn is open. memory.search.maxTokensPerDay sets the limit.");
  return 0;
}

function meaningOf(context: CommandContext, store: SessionStore): ReturnType<typeof openMeaning> {
  return openMeaning(context, store, {
    onNote: (message) => context.output.note(message),
  });
}

/** Prints for people what the `memory_search` tool returns to an agent, best hits first. */
async function search(context: CommandContext, words: readonly string[], options: MemoryOptions): Promise<number> {
  const { output, signal, scope, workingDirectory } = context;
  const query = words.join(" ").trim();
  if (query === "") throw usageError("memory search needs at least one word.");
  const store = await context.openStore("read");
  const ref = await askedBy(context, store, options.session ?? null);
  const root = options.workspace === undefined ? workspaceOf(context) : resolve(workingDirectory, options.workspace);
  const reach = options.session === undefined ? "agent" : "self";
  const tool = await memorySearchTool(context, store, { root, reach, meaning: await meaningOf(context, store) });
  const call = { signal, ref, callId: "command-line" };
  const result = await tool.run({ query, limit: options.limit ?? usualHits }, call);
  const details = typeof result === "string" ? undefined : (result.details as SearchDetails | undefined);
  const { hits } = details ?? {};
  if (hits === undefined)
    throw new ThroughlineError("INPUT_INVALID", blocksText(typeof result === "string" ? result : result.content));
  for (const hit of hits) await print(context, hit);
  const { searched: { files = 0, records = 0 } = {}, notes = [], isWhole = true } = details ?? {};
  if (output.isJson) {
    await output.object({ kind: "memory-search", isWhole, notes, files, records });
    await output.end(hits.length + 1);
  }
  await output.flush();
  const where = `${counted(files, "memory file")} below ${root} and ${counted(records, "record")} of agent ${scope.agentId}`;
  for (const note of notes) output.note(note.endsWith(".") ? note : `${note}.`);
  output.note(`${counted(hits.length, "place")}; ${where} were searched.`);
  return 0;
}

/** Without `--session`, uses a key that no session has, so that every session of the agent counts as past. */
async function askedBy(
  { scope, signal }: CommandContext,
  store: SessionStore,
  session: string | null,
): Promise<SessionRef> {
  if (session !== null) return (await resolveSession(store, session, scope, { signal })).ref;
  const { namespace, agentId } = scope;
  return sessionRef({ key: `agent:${agentId}:memory-search:nobody`, namespace, agentId });
}

async function print({ output }: CommandContext, hit: MemoryHit): Promise<void> {
  if (output.isJson) {
    const { kind: place, ...fields } = hit;
    await output.object({ kind: "memory", place, ...unknown, ...fields });
    return;
  }
  const where =
    hit.kind === "file"
      ? `${hit.path}:${hit.firstLine}-${hit.lastLine}`
      : `${hit.key} #${hit.seq}${hit.role === null ? "" : ` ${hit.role}`}`;
  await output.line({ text: where, style: "cyan" });
  await output.line(hit.snippet);
}

/** Every JSON object has all fields, so that readers need no case distinction. */
const unknown = {
  path: null,
  firstLine: null,
  lastLine: null,
  agentId: null,
  key: null,
  sessionId: null,
  seq: null,
  id: null,
  role: null,
  firstSeq: null,
  lastSeq: null,
  tsMs: null,
  names: [],
} as const;
