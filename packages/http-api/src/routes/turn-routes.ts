import { type AppendResult, hasErrorCode, type RecordDraft, ThroughlineError } from "@throughline/core";
import { assertFewMembers, loadExisting, refused, systemRandom } from "@throughline/core/internal";
import type { SessionRef, SessionState } from "@throughline/core";
import { closeLeasedTurn, keyedTurnId, leaseTurn } from "@throughline/session/internal";
import { z } from "zod";
import { json, type Answer } from "../http/answer.ts";
import { present } from "../http/present.ts";
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
    fence: seq
      .nullable()
      .describe("names the turn in the requests that belong to it; null where the key opened a turn that is over"),
    leaseUntilMs: z.number().nullable().describe("null once the turn is closed"),
    head: headSchema,
    ids: z.array(z.string()).describe("of the records that were appended with it"),
    replayed: z.boolean().describe("true when an earlier request with the key gave this answer"),
    interruptedTurn: z
      .looseObject({ turnId: z.string(), owner: z.string() })
      .nullable()
      .describe("what another program left open in the session, when this turn was opened"),
  })
  .meta({ id: "lease" });

const errors = ["SESSION_NOT_FOUND", "SESSION_ARCHIVED", "TURN_FENCED", "RECORD_INVALID", "RECORD_TOO_LARGE"] as const;

/**
 * Offers turns to programs without direct access to the store. A turn is a lease, and only the holder of its fence may
 * write.
 */
export const turnRoutes: readonly RouteDefinition[] = [
  route({
    id: "openTurn",
    method: "POST",
    path: "/sessions/{session}/turns",
    summary: "Opens a turn: nobody else writes messages until it is closed or its lease has run out.",
    description:
      "With `whenBusy: wait` the answer waits for the end of a running turn. A client that goes away leaves its turn open until the lease ends; the next turn names it as interrupted. A mark in the log states where the turn begins and ends. A session in which the agent may not answer is refused with the rule that decides, and a reset that is due comes before the turn.",
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
    errors: [
      ...errors,
      "SEND_DENIED",
      "SESSION_BUSY",
      "APPEND_CONFLICT",
      "IDEMPOTENCY_MISMATCH",
      "IDEMPOTENCY_EXPIRED",
    ],
    handle: async (request) => {
      const at = request.ref();
      const { context, body, signal } = request;
      const { whenBusy = "reject", waitMs = 60_000 } = body;
      const { idempotencyKey } = idempotencyKeyOf(request);
      await context.turnRules.prepare(request.view.store(at.agentId), at, (sessionId) =>
        idempotencyKey === undefined ? (body.turnId ?? null) : keyedTurnId(sessionId, idempotencyKey),
      );
      const untilMs = context.clock.nowMs() + (whenBusy === "wait" ? waitMs : 0);
      for (;;) {
        try {
          const answer = await openOnce(request, at);
          context.summaries.retries.soon(at);
          return answer;
        } catch (error) {
          const leftMs = untilMs - context.clock.nowMs();
          if (!hasErrorCode(error, "SESSION_BUSY") || leftMs <= 0) throw error;
          // The jitter prevents all waiting clients from retrying at the same time.
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
        outcome: z
          .enum(["done", "aborted", "failed", "step-limit"])
          .exactOptional()
          .describe("how it ended, for those who read the log; done without it"),
        entry: openObject.exactOptional().describe("fields to set in the entry; null removes a field"),
      }),
    },
    headers: { "idempotency-key": "1 to 200 visible ASCII characters" },
    answers: { 200: { description: "The turn is closed.", schema: leaseSchema } },
    errors: [...errors, "IDEMPOTENCY_MISMATCH", "IDEMPOTENCY_EXPIRED"],
    handle: async (request) => {
      const { body, view } = request;
      const at = request.ref();
      const fence = fenceOf(request);
      const { outcome = "done" } = body ?? {};
      assertFewMembers(body?.entry);
      const entry = Object.entries(body?.entry ?? {}).map(([name, value]) => [name, value ?? undefined] as const);
      const { turnId, result, ids } = await closeLeasedTurn(view.store(at.agentId), at, {
        fence,
        outcome,
        drafts: recordDraftsOf(body?.drafts),
        ...(body?.entry === undefined ? {} : { entry: Object.fromEntries(entry) }),
        ...idempotencyKeyOf(request),
      });
      return leaseAnswer(200, result, { turnId, fence, ids });
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

async function openOnce(request: OpenRequest, at: SessionRef): Promise<Answer> {
  const { view, context, body } = request;
  const { owner, turnId, expect } = body;
  const store = view.store(at.agentId);
  try {
    const { interruptedTurn, ...lease } = await leaseTurn(store, at, {
      ...present({ turnId, expect }),
      ...idempotencyKeyOf(request),
      owner,
      leaseMs: body.leaseMs ?? defaultLeaseMs,
      drafts: recordDraftsOf(body.drafts),
      clock: context.clock,
      random: systemRandom,
    });
    return json(201, { kind: "lease", ...lease, interruptedTurn });
  } catch (error) {
    if (!hasErrorCode(error, "SESSION_BUSY")) throw error;
    throw withTurn(error, (await loadExisting(store, at)).head.turn);
  }
}

/** Adds the running turn to the details of the error, so that the client can show who is answering. */
function withTurn(error: ThroughlineError, turn: SessionState["head"]["turn"]): ThroughlineError {
  const { code, message, remedy, outcome, details } = error;
  const more = { remedy, ...(outcome === null ? {} : { outcome }), details: { ...details, turn } };
  return new ThroughlineError(code, message, more);
}

/** The cast is safe: the store validates each draft, including drafts that carry their own line. */
function recordDraftsOf(wires: readonly Readonly<Record<string, unknown>>[] = []): readonly RecordDraft[] {
  return wires.map(draftOf) as readonly RecordDraft[];
}

function leaseAnswer(
  status: number,
  { head, replayed }: AppendResult,
  { turnId, fence, ids = [] }: { readonly turnId: string; readonly fence: number; readonly ids?: readonly string[] },
): Answer {
  const leaseUntilMs = head.turn?.fence === fence ? head.turn.leaseUntilMs : null;
  return json(status, { kind: "lease", turnId, fence, leaseUntilMs, head, ids, replayed, interruptedTurn: null });
}

function fenceOf({ parameters }: Pick<ApiRequest, "parameters">): number {
  const text = parameters["fence"] ?? "";
  if (!/^\d{1,15}$/.test(text)) throw refused("INPUT_INVALID", "A turn is named by its fence, a number.", {});
  return Number(text);
}
