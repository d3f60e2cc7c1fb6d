import { createHash } from "node:crypto";
import { listCheckpoints } from "@throughline/checkpoint";
import type { CompactionRequest } from "@throughline/compaction/internal";
import { loadExisting, refused, sessionRefText } from "@throughline/core/internal";
import { withinMemory } from "@throughline/core/internal/node";
import { readWindow, type SessionRef, type SessionState, ThroughlineError } from "@throughline/core";
import { emptyCalibration } from "@throughline/tokens";
import { readCalibration } from "@throughline/tokens/internal";
import { z } from "zod";
import { compactionByKey, compactionRow, plannedCompaction, type CompactionRow } from "../compaction-json.ts";
import { measureContext, namedModel, nextContext } from "../context-size.ts";
import { json, list, type Answer } from "../http/answer.ts";
import { route, type ApiRequest, type RouteDefinition } from "../http/route.ts";
import { checkpointJson, plannedCheckpointJson, type SessionNames } from "../json-shapes.ts";
import { checkpointSchema, compactionSchema } from "../schemas/reading.ts";
import { sessionQuery } from "../schemas/session.ts";
import { listOf, queryInteger } from "../schemas/values.ts";
import { idempotencyKeyOf } from "./append-options.ts";
import { mostPageRecords } from "./store-routes.ts";

const summarySchema = z.strictObject({
  dryRun: z.boolean().exactOptional().describe("only says what would be done"),
  model: z.string().max(200).exactOptional().describe("whose tokens are counted; the session's own without it"),
  window: z.int().min(1).exactOptional().describe("the model's window in tokens; the session's own without it"),
});

type SummaryBody = z.output<typeof summarySchema> | undefined;

const errors = ["SESSION_NOT_FOUND", "SESSION_ARCHIVED", "SESSION_BUSY", "MEMORY_SHORT"] as const;

export const summaryRoutes: readonly RouteDefinition[] = [
  route({
    id: "listCheckpoints",
    method: "GET",
    path: "/sessions/{session}/checkpoints",
    summary: "The checkpoints of a session, the oldest first.",
    scope: "read",
    query: z.strictObject({
      ...sessionQuery,
      limit: queryInteger(1, mostPageRecords).exactOptional().describe("the newest; all without it"),
    }),
    answers: { 200: { description: "The checkpoints.", schema: listOf(checkpointSchema) } },
    errors: ["SESSION_NOT_FOUND"],
    handle: async ({ ref, view, query, signal }) => {
      const at = ref();
      const store = view.store(at.agentId);
      const state = await loadExisting(store, at);
      const all = await listCheckpoints(store, at, { signal });
      const shown = query.limit === undefined ? all : all.slice(-query.limit);
      return list(shown.map((checkpoint) => JSON.stringify(checkpointJson(namesOf(state), checkpoint))));
    },
  }),
  route({
    id: "makeCheckpoint",
    method: "POST",
    path: "/sessions/{session}/checkpoint",
    summary: "Writes down where a conversation stands.",
    description:
      "Where nothing is new, the newest checkpoint is answered, so that the request may be repeated. Without a configured model the checkpoint is extracted by rules.",
    scope: "write",
    isAlsoRead: true,
    query: z.strictObject(sessionQuery),
    body: { schema: summarySchema, isOptional: true },
    answers: { 200: { description: "The checkpoint.", schema: checkpointSchema } },
    errors: [...errors, "SUMMARY_FAILED"],
    handle: async (request) => {
      const at = request.ref();
      if (request.body?.dryRun === true) {
        const { state, tokens } = await measured(request, at);
        return json(200, plannedCheckpointJson(namesOf(state), state.head.lastSeq, tokens));
      }
      const what = JSON.stringify(["checkpoint", sessionRefText(at), request.body?.model ?? null]);
      return request.context.summaries.once(what, async () => {
        const { state, tokens } = await measured(request, at);
        return checkpointAnswer(request, state, tokens);
      });
    },
  }),
  route({
    id: "compactSession",
    method: "POST",
    path: "/sessions/{session}/compact",
    summary: "Replaces the older part of a conversation by a summary. The log keeps every record.",
    description:
      "A second request for the same session waits for the first and shares its result. A repeat with the same `idempotency-key` answers with the compaction that the first made; without a key it finds nothing more to compact, and `state` is `nothing`. Without a configured model the summary is extracted by rules.",
    scope: "write",
    headers: { "idempotency-key": "1 to 200 visible ASCII characters" },
    query: z.strictObject(sessionQuery),
    body: { schema: summarySchema, isOptional: true },
    answers: { 200: { description: "What was done, or would be.", schema: compactionSchema } },
    errors: [...errors, "IDEMPOTENCY_MISMATCH"],
    handle: async (request) => {
      const at = request.ref();
      if (request.body?.dryRun === true) return json(200, await compactionOf(request, at));
      const { model = null, window = null } = request.body ?? {};
      const { idempotencyKey: key = null } = idempotencyKeyOf(request);
      const what = JSON.stringify(["compact", sessionRefText(at), model, window, key]);
      // The work continues when the client disconnects, because other requests may share it.
      return json(200, await request.context.summaries.once(what, () => compactionOf(request, at)));
    },
  }),
];

function namesOf({ ref, sessionId }: SessionState): SessionNames {
  return { key: ref.key, sessionId };
}

interface Measured {
  readonly state: SessionState;
  readonly tokens: number;
  readonly compaction: CompactionRequest;
}

type SummaryRequest = Pick<ApiRequest<unknown, SummaryBody>, "view" | "context" | "body" | "header">;

/** Loads the session and measures its next request. @throws {ThroughlineError} SESSION_NOT_FOUND, SESSION_ARCHIVED */
async function measured({ context, view, body }: SummaryRequest, at: SessionRef): Promise<Measured> {
  if (at.archiveId !== undefined)
    throw refused("SESSION_ARCHIVED", "An archived session stays as it is.", { archiveId: at.archiveId });
  const { state, records } = await readWindow(withinMemory(view.store(at.agentId)), at);
  const { built, windowTokens, learned } = await nextContext(state, records, body?.window);
  const model = body?.model === undefined ? null : namedModel(body.model);
  const { estimator } = context.summaries;
  const { gauge } = await measureContext(built, { model, windowTokens, learned, estimator });
  const compaction: CompactionRequest = {
    counter: await estimator.counterFor(model ?? built.model ?? { provider: null, modelId: "" }),
    calibration: readCalibration(learned) ?? emptyCalibration,
    windowTokens,
    totalTokens: gauge.tokens,
    way: "asked",
  };
  return { state, tokens: gauge.tokens, compaction };
}

async function compactionOf(request: SummaryRequest, at: SessionRef): Promise<CompactionRow> {
  const { context, body } = request;
  const { state, compaction } = await measured(request, at);
  const { summaries } = context;
  if (body?.dryRun === true)
    return plannedCompaction(context.store, at, namesOf(state), await summaries.compactor.plan(at, compaction));
  const recordId = keyedCompactionId(request);
  const earlier = recordId === null ? null : await compactionByKey(context.store, state, recordId);
  if (earlier !== null) return earlier;
  const compactor = recordId === null ? summaries.compactor : summaries.compactorOf(recordId);
  const { turn } = state.head;
  const busy = (): ThroughlineError => refused("SESSION_BUSY", "A turn is running in the session.", { turn });
  if (turn !== null && turn.leaseUntilMs > context.clock.nowMs()) throw busy();
  const result = await compactor.compact(at, compaction);
  if (result.kind === "busy") throw busy();
  return compactionRow(context.store, at, namesOf(state), result);
}

/**
 * Derives the compaction id from the idempotency key and the body, so that a repeat finds the record. Null without a
 * key.
 */
function keyedCompactionId(request: SummaryRequest): string | null {
  const { idempotencyKey: key } = idempotencyKeyOf(request);
  const { model = null, window = null } = request.body ?? {};
  const hashed = (value: unknown, length: number): string =>
    createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, length);
  return key === undefined ? null : `compaction-${hashed(key, 24)}-${hashed([model, window], 8)}`;
}

async function checkpointAnswer(
  { context, view }: SummaryRequest,
  state: SessionState,
  tokens: number,
): Promise<Answer> {
  const result = await context.summaries.checkpointer.make(state.ref, tokens);
  if (result.kind === "failed") {
    if (ThroughlineError.isInstance(result.cause)) throw result.cause;
    throw new ThroughlineError("SUMMARY_FAILED", "No checkpoint was made.", {
      cause: result.cause,
      outcome: "not-applied",
    });
  }
  const all = await listCheckpoints(view.store(state.ref.agentId), state.ref);
  const made = result.kind === "written" ? all.find(({ id }) => id === result.recordId) : all.at(-1);
  if (made !== undefined && (result.kind === "written" || result.reason === "nothing-new"))
    return json(200, checkpointJson(namesOf(state), made));
  const reason = result.kind === "nothing" ? result.reason : "overtaken";
  if (reason === "nothing-new" || reason === "no-writers")
    throw refused("INPUT_INVALID", "The session has no messages that a checkpoint could be made of.", { reason });
  throw refused("SESSION_BUSY", "Another checkpoint of the session is being made.", { reason });
}
