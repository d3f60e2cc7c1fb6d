import { refused } from "@throughline/core/internal";
import { decideApproval, listApprovals, withdrawal } from "@throughline/session/internal";
import { z } from "zod";
import { json, list } from "../http/answer.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { present } from "../http/present.ts";
import { sessionQuery } from "../schemas/session.ts";
import { atMs, listOf, openObject } from "../schemas/values.ts";

const approvalSchema: z.ZodObject = z
  .strictObject({
    kind: z.literal("approval"),
    callId: z.string().describe("of the tool call, as the model stated it"),
    tool: z.string(),
    arguments: openObject.describe("of the call"),
    facts: openObject.describe("what the program that asked wants the person to know"),
    askedAtMs: atMs.nullable(),
    expiresAtMs: atMs.nullable().describe("when the call counts as refused; null for never"),
    turnId: z.string().describe("of the turn that asked"),
  })
  .meta({ id: "approval" });

const decisionSchema: z.ZodObject = z
  .strictObject({
    kind: z.literal("decision"),
    callId: z.string(),
    isAllowed: z.boolean(),
    words: z.string().nullable().describe("what the model reads of a refusal"),
    replayed: z.boolean().describe("the same decision was stored before"),
  })
  .meta({ id: "decision" });

export const approvalRoutes: readonly RouteDefinition[] = [
  route({
    id: "listApprovals",
    method: "GET",
    path: "/sessions/{session}/approvals",
    summary: "The tool calls of a session that wait for a decision.",
    description: "The list is empty while a turn runs, and leaves out calls whose deadline is over.",
    scope: "read",
    query: z.strictObject(sessionQuery),
    answers: { 200: { description: "The calls, in the order of the reply.", schema: listOf(approvalSchema) } },
    errors: ["SESSION_NOT_FOUND"],
    handle: async ({ context, ref, view }) => {
      const at = ref();
      const approvals = await listApprovals(view.store(at.agentId), at, context.clock);
      return list(approvals.map((approval) => JSON.stringify({ kind: "approval", ...approval })));
    },
  }),
  route({
    id: "decideApproval",
    method: "POST",
    path: "/sessions/{session}/approvals",
    summary:
      "Stores a decision on a tool call that waits. The server runs no tool: the program that resumes the turn does.",
    description:
      "The first decision on a call holds. The same decision again changes nothing. A call whose deadline is over cannot be decided on.",
    scope: "write",
    query: z.strictObject(sessionQuery),
    body: {
      schema: z.strictObject({
        callId: z.string().min(1),
        decision: z.enum(["approve", "refuse", "withdraw"]).describe("withdraw: the program takes its question back"),
        text: z.string().min(1).max(4096).exactOptional().describe("what the model reads; needed for refuse"),
        by: z.enum(["person", "session", "setting", "flag", "program"]).exactOptional().describe("who decided"),
      }),
    },
    answers: {
      200: { description: "The same decision was stored before.", schema: decisionSchema },
      201: { description: "The decision is stored.", schema: decisionSchema },
    },
    errors: ["SESSION_NOT_FOUND", "SESSION_ARCHIVED", "SESSION_BUSY", "APPROVAL_DECIDED"],
    handle: async ({ context, ref, view, body }) => {
      const at = ref();
      const { callId, decision, text, by } = body;
      const isApproved = decision === "approve";
      if (isApproved === (text !== undefined) && decision !== "withdraw")
        throw refused("INPUT_INVALID", "A refusal has a text, and an approval has none.", { path: "text" });
      const facts = present({ by });
      const refusal = decision === "withdraw" ? withdrawal(text) : { refuse: text ?? "", ...facts };
      const answer = isApproved ? { approve: facts } : refusal;
      const decided = await decideApproval(view.store(at.agentId), at, { callId, answer, clock: context.clock });
      return json(decided.replayed ? 200 : 201, { kind: "decision", ...decided });
    },
  }),
];
