import {
  findRecord,
  keptOnReset,
  loadExisting,
  noteArchiving,
  refused,
  resetSession,
  stillAnswering,
  systemRandom,
} from "@throughline/core/internal";
import {
  type BranchChoice,
  type BranchPlace,
  listSiblings,
  moveStoredHead,
  readBranchPlace,
  rewound,
  switched,
} from "@throughline/session/internal";
import { z } from "zod";
import { type Answer, json, list } from "../http/answer.ts";
import { type ApiRequest, route, type RouteDefinition } from "../http/route.ts";
import { entryFlag, sessionQuery, sessionSchema } from "../schemas/session.ts";
import { atMs, listOf, seq } from "../schemas/values.ts";
import { writtenSessionJson } from "./session-json.ts";
import type { View } from "../security/view.ts";

const withEntry = z.strictObject({ ...sessionQuery, ...entryFlag });

const branchSchema: z.ZodObject = z
  .strictObject({
    kind: z.literal("branch"),
    recordId: z.string().describe("of the message"),
    seq,
    tsMs: atMs.nullable(),
    role: z.enum(["user", "assistant"]).nullable().describe("null for a message that was redacted"),
    text: z.string().describe("the first words of the message, at most 80 characters"),
    newestId: z.string().describe("the newest record behind the message"),
    newestTsMs: atMs.nullable(),
    isCurrent: z.boolean().describe("on the branch of the head"),
  })
  .meta({ id: "branch" });

export const rewindRoutes: readonly RouteDefinition[] = [
  route({
    id: "resetSession",
    method: "POST",
    path: "/sessions/{session}/reset",
    summary: "Begins an empty session under the key, and archives the one that is there.",
    description: "Where the session with this id has the key already, it is answered as it is.",
    scope: "write",
    query: withEntry,
    body: {
      schema: z.strictObject({
        sessionId: z.string().describe("of the new session, chosen by the caller"),
        bare: z.boolean().exactOptional().describe("without the settings that a session keeps over a reset"),
      }),
    },
    answers: {
      200: { description: "It was reset already.", schema: sessionSchema },
      201: { description: "The new session.", schema: sessionSchema },
    },
    errors: ["SESSION_NOT_FOUND", "SESSION_ARCHIVED", "SESSION_BUSY", "SESSION_ID_INVALID", "ID_CASE_COLLISION"],
    handle: async ({ context, ref, view, query, body }) => {
      const at = ref();
      const store = view.store(at.agentId);
      if (at.archiveId !== undefined)
        throw refused("SESSION_ARCHIVED", "An archived session is not reset.", { archiveId: at.archiveId });
      const old = await loadExisting(store, at);
      const { sessionId, bare = false } = body;
      if (old.sessionId === sessionId) return json(200, writtenSessionJson(view, old, query.entry));
      const { turn } = old.head;
      if (turn !== null && turn.leaseUntilMs > context.clock.nowMs())
        throw refused("SESSION_BUSY", stillAnswering(turn.owner), { turn });
      await noteArchiving(store, at, context.clock);
      // `resetSession` asks the random source for the id, so this source returns the id that the caller chose.
      const random = { ...systemRandom, uuid: () => sessionId };
      const state = await resetSession(store, at, { random, ...(bare ? {} : { keep: keptOnReset }) });
      return json(201, writtenSessionJson(view, state, query.entry));
    },
  }),
  route({
    id: "rewindSession",
    method: "POST",
    path: "/sessions/{session}/rewind",
    summary: "Moves the head to an earlier record, or to one of another branch. What is left behind stays readable.",
    scope: "write",
    query: withEntry,
    body: {
      schema: z.strictObject({ to: z.string().nullable().describe("the id of a record; null: before the first") }),
    },
    answers: { 200: { description: "The session.", schema: sessionSchema } },
    errors: ["SESSION_NOT_FOUND", "SESSION_ARCHIVED", "RECORD_NOT_FOUND", "SESSION_BUSY", "APPEND_CONFLICT"],
    handle: async ({ body: { to }, query, ...request }) => {
      const place = await placeOf(request);
      return moved(request.view, place, rewound(to === null ? null : await recordIdAt(place, to)), query.entry);
    },
  }),
  route({
    id: "switchBranch",
    method: "POST",
    path: "/sessions/{session}/switch",
    summary: "Returns to the branch of a record: moves the head to the newest record behind it.",
    scope: "write",
    query: withEntry,
    body: { schema: z.strictObject({ to: z.string().describe("the id of a record, such as one of `…/branches`") }) },
    answers: { 200: { description: "The session.", schema: sessionSchema } },
    errors: ["SESSION_NOT_FOUND", "SESSION_ARCHIVED", "RECORD_NOT_FOUND", "SESSION_BUSY", "APPEND_CONFLICT"],
    handle: async ({ body: { to }, query, ...request }) => {
      const place = await placeOf(request);
      return moved(request.view, place, switched(await recordIdAt(place, to)), query.entry);
    },
  }),
  route({
    id: "listBranches",
    method: "GET",
    path: "/sessions/{session}/branches",
    summary: "The messages that follow the same message as this one, itself included, the oldest first.",
    description: "Each begins a branch. `POST …/switch` returns to one.",
    scope: "read",
    query: z.strictObject({ ...sessionQuery, record: z.string().describe("the id of a message of a user or a model") }),
    answers: { 200: { description: "The messages.", schema: listOf(branchSchema) } },
    errors: ["SESSION_NOT_FOUND", "RECORD_NOT_FOUND"],
    handle: async ({ query: { record }, ...request }) => {
      const place = await placeOf(request);
      const branches = await listSiblings(place, await recordIdAt(place, record));
      return list(branches.map((branch) => JSON.stringify({ kind: "branch", ...branch })));
    },
  }),
];

type RequestOfSession = Pick<ApiRequest, "context" | "ref" | "view" | "signal">;

/** Reads the place of the head of the session that a request names. @throws {ThroughlineError} SESSION_NOT_FOUND */
function placeOf({ context, ref, view, signal }: RequestOfSession): Promise<BranchPlace> {
  const at = ref();
  return readBranchPlace({ store: view.store(at.agentId), ref: at, clock: context.clock, signal });
}

/** Returns the id of the record that a client names. @throws {ThroughlineError} RECORD_NOT_FOUND */
async function recordIdAt({ store, ref, signal }: BranchPlace, named: string): Promise<string> {
  return (await findRecord(store, ref, named, signal)).id;
}

/** Moves the head, and answers with the session. */
async function moved(
  view: View,
  place: BranchPlace,
  choice: BranchChoice,
  withEntry: boolean | undefined,
): Promise<Answer> {
  await moveStoredHead(place, choice);
  return json(200, writtenSessionJson(view, await loadExisting(place.store, place.ref), withEntry));
}
