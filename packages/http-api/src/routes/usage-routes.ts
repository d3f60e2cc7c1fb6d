import type { SessionRow } from "@throughline/core/internal";
import type { UsageKey, UsageQuery } from "@throughline/usage/internal";
import { z } from "zod";
import { json } from "../http/answer.ts";
import { present } from "../http/present.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { commaList, queryInteger } from "../schemas/values.ts";
import type { View } from "../security/view.ts";

const totals = {
  calls: z.int().min(0),
  seconds: z.number().describe("that models worked on the calls, as far as the log shows it"),
  input: z.number().describe("prompt tokens that no cache served"),
  cacheRead: z.number(),
  cacheWrite: z.number(),
  output: z.number(),
  reasoning: z.number().describe("part of `output`"),
  costUsd: z.number().nullable().describe("of the calls with a known price; null when it is known of none"),
  statedUsd: z.number().describe("the part of `costUsd` that programs stated themselves"),
  unpricedCalls: z.int().min(0).describe("calls without a known price, which `costUsd` lacks"),
  doubtfulCalls: z.int().min(0).describe("calls that are left out because their counts cannot be right"),
};

const usageRowSchema: z.ZodObject = z
  .strictObject({
    kind: z.literal("usage"),
    group: z.record(z.string(), z.string().nullable()).describe("the value for each name of `by`"),
    name: z.string().nullable().describe("of the session, for rows by session"),
    ...totals,
  })
  .meta({ id: "usage" });

const reportSchema: z.ZodObject = z
  .strictObject({
    kind: z.literal("usageReport"),
    rows: z.array(usageRowSchema),
    total: z.strictObject({ kind: z.literal("usageTotal"), ...totals }),
    unpricedModels: z.array(z.string().nullable()),
    pricesAsOf: z.string().describe("the day of the prices, YYYY-MM-DD"),
    unread: z
      .array(z.strictObject({ agentId: z.string(), key: z.string(), code: z.string(), message: z.string() }))
      .describe("sessions of which some record cannot be read; they are not counted"),
    isComplete: z.boolean().describe("whether every session is counted"),
    sessionsLeft: z.int().min(0).describe("the sessions that are not counted"),
  })
  .meta({ id: "usageReport" });

const usageKeys = ["day", "week", "month", "session", "model", "program", "folder", "agent"] as const;

interface UsageRequest {
  readonly agent?: string;
  readonly by?: readonly UsageKey[];
  readonly sinceMs?: number;
  readonly untilMs?: number;
  readonly timeZone?: string;
  readonly model?: string;
  readonly program?: readonly string[];
}

export const usageRoutes: readonly RouteDefinition[] = [
  route({
    id: "usage",
    method: "GET",
    path: "/usage",
    summary: "Tokens and cost of the calls in all sessions that the token reaches.",
    description:
      "Archived and imported sessions count. Each call counts once, also if forks share it. The first answer of a server reads every record; later ones read new records only.",
    scope: "read",
    query: z.strictObject({
      agent: z.string().exactOptional().describe("only sessions of this agent"),
      by: commaList(z.enum(usageKeys))
        .exactOptional()
        .describe("one or two of day, week, month, session, model, program, folder, agent, with a comma between them"),
      sinceMs: queryInteger(0).exactOptional().describe("rounded down to a quarter of an hour"),
      untilMs: queryInteger(0).exactOptional().describe("rounded down to a quarter of an hour"),
      timeZone: z.string().exactOptional().describe("of days, weeks and months; that of the server without it"),
      model: z.string().exactOptional().describe("only models whose name starts with this text"),
      program: commaList(z.string().min(1))
        .exactOptional()
        .describe("only sessions of these formats, with commas between them; `own` for own sessions"),
    }),
    answers: { 200: { description: "The sums.", schema: reportSchema } },
    errors: ["SESSION_NOT_FOUND", "CAPABILITY_UNSUPPORTED"],
    handle: async ({ context, view, query, signal }) => {
      // The cast is safe: the schema has the fields of `UsageRequest`, but its type loses their names.
      const report = await context.callUsage.report({ ...usageQuery(view, query as UsageRequest), signal });
      const { rows, total, unpricedModels, pricesAsOf } = report;
      const unread = report.unread.filter(
        ({ agentId }) => view.isSeen(agentId) && (query.agent ?? agentId) === agentId,
      );
      return json(200, {
        kind: "usageReport",
        rows: rows.map((row) => ({ kind: "usage", ...row })),
        total: { kind: "usageTotal", ...total },
        unpricedModels,
        pricesAsOf,
        unread: unread.map(({ error, ...session }) => ({ ...session, code: error.code, message: error.message })),
        isComplete: unread.length === 0,
        sessionsLeft: unread.length,
      });
    },
  }),
];

/** @throws {ThroughlineError} SESSION_NOT_FOUND for an agent outside of the view */
function usageQuery(view: View, { agent, program, ...rest }: UsageRequest): UsageQuery {
  if (agent !== undefined) view.store(agent);
  const isWanted = (row: SessionRow): boolean =>
    view.isSeen(row.agentId) && (program === undefined || program.includes(row.program ?? "own"));
  return { ...present({ ...rest, agentId: agent }), namespace: view.namespace, isWanted };
}
