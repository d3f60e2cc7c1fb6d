import { resolve } from "node:path";
import { sessionRef, ThroughlineError } from "@throughline/core";
import type { SessionRef, SessionStore } from "@throughline/core";
import type { MemoryHit } from "@throughline/tools/internal";
import { memorySearchTool, workspaceOf } from "@throughline/agent/internal";
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
}

const usualHits = 5;

/** Prints for people what the `memory_search` tool returns to an agent, best hits first. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const [action, ...words] = input.arguments;
  const { output, signal, scope, workingDirectory } = context;
  const options = input.options as MemoryOptions;
  if (action !== "search")
    throw usageError(`memory has no action ${JSON.stringify(action)}; use: memory search QUERY.`);
  const query = words.join(" ").trim();
  if (query === "") throw usageError("memory search needs at least one word.");
  const store = await context.openStore("read");
  const ref = await askedBy(context, store, options.session ?? null);
  const root = options.workspace === undefined ? workspaceOf(context) : resolve(workingDirectory, options.workspace);
  const reach = options.session === undefined ? "agent" : "self";
  const tool = await memorySearchTool(context, store, { root, reach });
  const call = { signal, ref, callId: "command-line" };
  const result = await tool.run({ query, limit: options.limit ?? usualHits }, call);
  const details = typeof result === "string" ? undefined : (result.details as SearchDetails | undefined);
  const { hits } = details ?? {};
  if (hits === undefined)
    throw new ThroughlineError("INPUT_INVALID", blocksText(typeof result === "string" ? result : result.content));
  for (const hit of hits) await print(context, hit);
  if (output.isJson) await output.end(hits.length);
  await output.flush();
  const { files = 0, records = 0 } = details?.searched ?? {};
  const where = `${counted(files, "memory file")} below ${root} and ${counted(records, "record")} of agent ${scope.agentId}`;
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
