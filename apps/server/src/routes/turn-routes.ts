import { hasErrorCode, loadExisting, ThroughlineError, type AppendDraft, type AppendResult } from "@throughline/core";
import type { SessionRef, SessionState, SessionStore } from "@throughline/core";
import { systemRandom } from "@throughline/core/node";
import { refused } from "@throughline/core/store";
import { z } from "zod";
import { json, type Answer } from "../http/answer.ts";
import { route, type ApiRequest, type RouteDefinition } from "../http/route.ts";
import { headSchema, sessionQuery } from "../schemas/session.ts";
import { openObject, seq } from "../schemas/values.ts";
import { draftOf, idempotencyKeyOf } from "./append-options.ts";

const leaseMs = z
  .int()
  .min(1000)
  .max(3_600_000)
  .describe("how long the turn is held without being renewed, in milliseconds");
const drafts = z.array(openObject).describe("records that are appended in the same commit");
const expect = z.strictObject({ head: z.string().nullable() }).describe("refuses unless the head is this record");
const defaultLeaseMs = 30_000;

const leaseSchema = z
  .looseObject({
    kind: z.literal("lease"),
    turnId: z.string(),
    fence: seq.describe("names the turn in the requests that belong to it"),
    leaseUntilMs: z.number().nullable().describe("null once the turn is closed"),
    head: headSchema,
    ids: z.array(z.string()).describe("of the records that were appended with it"),
    replayed: z.boolean().describe("true when an earlier request with the key gave this answer"),
  })
  .meta({ id: "lease" });

const errors = ["SESSION_NOT_FOUND", "SESSION_ARCHIVED", "TURN_FENCED", "RECORD_INVALID", "RECORD_TOO_LARGE"] as const;

/** Turns for programs that hold no handle of the store: a lease, which only the holder of its fence writes under. */
export const turnRoutes: readonly RouteDefinition[] = [
  route({
    id: "openTurn",
    method: "POST",
    path: "/sessions/{session}/turns",
    summary: "Opens a turn: nobody else writes messages until it is closed or its lease has run out.",
    description:
      "With `whenBusy: wait` the answer waits for the end of a running turn. A client that goes away leaves its turn open until the lease ends.",
    scope: "write",
    query: z.strictObject(sessionQuery),
    body: {
      schema: z.strictObject({
        owner: z.string().min(1).max(200).describe("the name that SESSION_BUSY gives to others while the turn runs"),
        leaseMs: leaseMs.exactOptional(),
        turnId: z.string().min(1).max(200).exactOptional().describe("chosen by the caller; made without it"),
        drafts: drafts.exactOptional(),
        expect: expect.exactOptional(),
        whenBusy: z.enum(["reject", "wait"]).exactOptional().describe("reject without it"),
        waitMs: z.int().min(0).max(60_000).exactOptional().describe("60,000 without it"),
      }),
    },
    headers: { "idempotency-key": "1 to 200 visible ASCII characters" },
    answers: { 201: { description: "The lease.", schema: leaseSchema } },
    errors: [...errors, "SESSION_BUSY", "APPEND_CONFLICT", "IDEMPOTENCY_MISMATCH", "IDEMPOTENCY_EXPIRED"],
    handle: async (request) => {
      const at = request.ref();
      const { context, body, signal } = request;
      const { whenBusy = "reject", waitMs = 60_000 } = body;
      const untilMs = context.clock.nowMs() + (whenBusy === "wait" ? waitMs : 0);
      for (;;) {
        try {
          return await openOnce(request, at);
        } catch (error) {
          const leftMs = untilMs - context.clock.nowMs();
          if (!hasErrorCode(error, "SESSION_BUSY") || leftMs <= 0) throw error;
          // With jitter, so that those who wait do not all ask at once.
          const pauseMs = Math.min(leftMs, 50 + (systemRandom.uint32() % 150));
          await context.clock.sleep(pauseMs, signal);
        }
      }
    },
  }),
  route({
    id: "renewTurn",
    method: "POST",
    path: "/sessions/{session}/turns/{fence}/renew",
    summary: "Holds a turn for longer.",
    scope: "write",
    query: z.strictObject(sessionQuery),
    body: { isOptional: true, schema: z.strictObject({ leaseMs: leaseMs.exactOptional() }) },
    answers: { 200: { description: "The lease.", schema: leaseSchema } },
    errors,
    handle: async (request) => {
      const { context, body, view } = request;
      const at = request.ref();
      const fence = fenceOf(request);
      const leaseUntilMs = context.clock.nowMs() + (body?.leaseMs ?? defaultLeaseMs);
      const result = await view.store(at.agentId).append(at, [], { turn: { action: "renew", fence, leaseUntilMs } });
      return leaseAnswer(200, result, { turnId: result.head.turn?.turnId ?? "", fence });
    },
  }),
  route({
    id: "closeTurn",
    method: "POST",
    path: "/sessions/{session}/turns/{fence}/close",
    summary: "Ends a turn, with its last records in the same commit.",
    scope: "write",
    query: z.strictObject(sessionQuery),
    body: {
      isOptional: true,
      schema: z.strictObject({
        drafts: drafts.exactOptional(),
        entry: openObject.exactOptional().describe("fields to set in the entry; null removes a field"),
      }),
    },
    headers: { "idempotency-key": "1 to 200 visible ASCII characters" },
    answers: { 200: { description: "The turn is closed.", schema: leaseSchema } },
    errors: [...errors, "IDEMPOTENCY_MISMATCH", "IDEMPOTENCY_EXPIRED"],
    handle: async (request) => {
      const { body, view } = request;
      const at = request.ref();
      const store = view.store(at.agentId);
      const fence = fenceOf(request);
      const turnId = (await loadExisting(store, at)).head.turn?.turnId ?? "";
      const entry = Object.fromEntries(
        Object.entries(body?.entry ?? {}).map(([name, value]) => [name, value ?? undefined]),
      );
      const result = await store.append(at, (body?.drafts ?? []).map(draftOf), {
        turn: { action: "close", fence },
        ...(body?.entry === undefined ? {} : { entry }),
        ...idempotencyKeyOf(request),
      });
      return leaseAnswer(200, result, { turnId, fence });
    },
  }),
];

type OpenRequest = Pick<ApiRequest, "view" | "context" | "header"> & {
  readonly body: {
    readonly owner: string;
    readonly leaseMs?: number;
    readonly turnId?: string;
    readonly drafts?: readonly Readonly<Record<string, unknown>>[];
    readonly expect?: { readonly head: string | null };
  };
};

/** Between two looks at the fence somebody else may have opened a turn, and closed it again. */
const maxTries = 8;

async function openOnce(request: OpenRequest, at: SessionRef): Promise<Answer> {
  const { view, context, body } = request;
  const store: SessionStore = view.store(at.agentId);
  const turnId = body.turnId ?? systemRandom.uuid();
  const wires: readonly AppendDraft[] = (body.drafts ?? []).map(draftOf);
  for (let tries = 1; ; tries++) {
    const state: SessionState = await loadExisting(store, at);
    const fence = state.head.fence + 1;
    const leaseUntilMs = context.clock.nowMs() + (body.leaseMs ?? defaultLeaseMs);
    const { turn } = state.head;
    // The answer to a request that was lost: the turn is open already.
    if (turn !== null && body.turnId !== undefined && turn.turnId === turnId && turn.owner === body.owner)
      return json(201, { kind: "lease", ...turn, head: headOf(state), ids: [], replayed: true });
    try {
      const result = await store.append(at, wires, {
        turn: { action: "open", turnId, owner: body.owner, leaseUntilMs, fence },
        ...(body.expect === undefined ? {} : { expect: body.expect }),
        ...idempotencyKeyOf(request),
      });
      const held = result.head.turn;
      return leaseAnswer(201, result, { turnId: held?.turnId ?? turnId, fence: held?.fence ?? fence });
    } catch (error) {
      if (hasErrorCode(error, "SESSION_BUSY")) throw withTurn(error, (await loadExisting(store, at)).head.turn);
      if (!hasErrorCode(error, "TURN_FENCED") || tries === maxTries) throw error;
    }
  }
}

/** The same refusal with the turn that runs. */
function withTurn(error: ThroughlineError, turn: SessionState["head"]["turn"]): ThroughlineError {
  const { code, message, remedy, outcome, details } = error;
  const more = { remedy, ...(outcome === null ? {} : { outcome }), details: { ...details, turn } };
  return new ThroughlineError(code, message, more);
}

function headOf({ sessionId, head }: SessionState): Readonly<Record<string, unknown>> {
  return { ...head, sessionId };
}

function leaseAnswer(
  status: number,
  { head, records, replayed }: AppendResult,
  { turnId, fence }: { readonly turnId: string; readonly fence: number },
): Answer {
  const leaseUntilMs = head.turn?.fence === fence ? head.turn.leaseUntilMs : null;
  return json(status, { kind: "lease", turnId, fence, leaseUntilMs, head, ids: records.map(({ id }) => id), replayed });
}

function fenceOf({ parameters }: Pick<ApiRequest, "parameters">): number {
  const text = parameters["fence"] ?? "";
  if (!/^\d{1,15}$/.test(text)) throw refused("INPUT_INVALID", "A turn is named by its fence, a number.", {});
  return Number(text);
}
