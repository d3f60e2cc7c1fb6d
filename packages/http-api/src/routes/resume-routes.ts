import type { SessionState, SessionStore } from "@throughline/core";
import { agentOfKey, isFields, loadExisting, loadNamed, relatedSessions } from "@throughline/core/internal";
import type { HandOffTarget } from "@throughline/transfer/internal";
import { z } from "zod";
import { json, largeJson } from "../http/answer.ts";
import { type ApiRequest, route, type RouteDefinition } from "../http/route.ts";
import { sessionQuery, sessionSchema } from "../schemas/session.ts";
import { firstWords } from "./first-words.ts";
import { forkOrigin, sessionJson, type SessionJson } from "./session-json.ts";

const targets = ["claude-code", "codex", "gemini", "pi", "openclaw"] as const satisfies readonly HandOffTarget[];
/** Limits the sessions that an answer about relations looks at. */
const mostLooked = 10_000;
/** Limits the sub-agents whose first prompt is read. A page finds the call of one by it. */
const mostFirstWords = 100;

const resumeSchema = z
  .looseObject({
    kind: z.literal("resume"),
    own: z
      .looseObject({
        program: z.string().describe("its format"),
        command: z.string(),
        cwd: z.string().nullable(),
        isThere: z
          .boolean()
          .nullable()
          .describe("whether the program's own file is there; null where the server looks at no files"),
        missing: z
          .array(z.enum(["file", "folder", "program"]))
          .nullable()
          .describe("what the command needs and this machine lacks; null where the server looks at no files"),
      })
      .nullable()
      .describe("null for a session that began here, and for one that its program cannot resume"),
    here: z.string().describe("the command that continues it here: an import in a fork"),
    handOff: z.array(z.looseObject({ to: z.enum(targets), command: z.string() })),
    losses: z
      .array(
        z.looseObject({
          what: z.enum(["left-out", "added", "changed"]),
          kind: z.string(),
          records: z.int().min(0),
        }),
      )
      .exactOptional()
      .describe("with `to`: what that program has no place for"),
  })
  .meta({ id: "resume" });

const relationSchema = z
  .looseObject({
    key: z.string().nullable(),
    sessionId: z.string().nullable(),
    isHere: z.boolean().describe("whether the token can read it in this store"),
  })
  .nullable();

const relationsSchema = z
  .looseObject({
    kind: z.literal("relations"),
    parent: relationSchema.describe("the session that spawned it"),
    forkedFrom: relationSchema.describe("with `atSeq`: the last record that both have"),
    children: z
      .array(sessionSchema)
      .describe("the sessions that it spawned; the first 100 with `firstWords`, the first line of their first prompt"),
    forks: z.array(sessionSchema),
    handedOff: z.array(z.looseObject({ format: z.string(), sessionId: z.string(), path: z.string() })),
    isComplete: z
      .boolean()
      .describe("false: the store has more than 10,000 sessions, and the older ones were left out"),
  })
  .meta({ id: "relations" });

export const resumeRoutes: readonly RouteDefinition[] = [
  route({
    id: "getResume",
    method: "GET",
    path: "/sessions/{session}/resume",
    summary: "The commands that continue a session: in its own program, here, and in other programs.",
    description: "The server runs none of them. Arguments are quoted for a shell.",
    scope: "read",
    query: z.strictObject({
      ...sessionQuery,
      to: z.enum(targets).exactOptional().describe("adds what this program has no place for"),
    }),
    answers: { 200: { description: "The commands.", schema: resumeSchema } },
    errors: ["SESSION_NOT_FOUND"],
    handle: async ({ context, ref, view, query, signal }) => {
      const at = ref();
      const store = view.store(at.agentId);
      const state = await loadExisting(store, at);
      const { resumeCommands } = await import("@throughline/transfer/internal");
      const { own, here, handOff } = resumeCommands(state);
      const losses = query.to === undefined ? {} : { losses: await lossesOf(store, state, query.to, signal) };
      if (own === null) return json(200, { kind: "resume", own, here, handOff, ...losses });
      const { path, executable, ...shown } = own;
      const missing = (await context.sourceFiles?.missing({ path, cwd: own.cwd, executable })) ?? null;
      const isThere = missing === null ? null : !missing.includes("file");
      return json(200, { kind: "resume", own: { ...shown, isThere, missing }, here, handOff, ...losses });
    },
  }),
  route({
    id: "getRelations",
    method: "GET",
    path: "/sessions/{session}/relations",
    summary: "What a session came from, and what came from it.",
    scope: "read",
    query: z.strictObject(sessionQuery),
    answers: { 200: { description: "The sessions.", schema: relationsSchema } },
    errors: ["SESSION_NOT_FOUND"],
    handle: async (request) => {
      const { ref, view, signal } = request;
      const at = ref();
      const store = view.store(at.agentId);
      const state = await loadExisting(store, at);
      // A token of some agents sees relations within the agent of the session only.
      const scope = view.token.agents === "*" ? {} : { agentId: at.agentId };
      const found = await relatedSessions(store, state, { ...scope, most: mostLooked, signal });
      const origin = forkOrigin(state.entry);
      return largeJson(200, {
        kind: "relations",
        parent: await parentOf(request, state),
        forkedFrom:
          origin === null
            ? null
            : { ...origin, key: found.origin?.ref.key ?? origin.key, isHere: found.origin !== null },
        children: await childrenOf(store, found.children, signal),
        forks: found.forks.map((each) => sessionJson(each)),
        handedOff: handedOffOf(state.entry["handedOff"]),
        isComplete: found.isComplete,
      });
    },
  }),
];

async function childrenOf(
  store: SessionStore,
  children: readonly SessionState[],
  signal: AbortSignal,
): Promise<readonly SessionJson[]> {
  const shown: SessionJson[] = [];
  for (const [index, child] of children.entries()) {
    const words = index < mostFirstWords ? { firstWords: await firstWords(store, child.ref, signal) } : {};
    shown.push({ ...sessionJson(child), ...words });
  }
  return shown;
}

/** A key may be that of another agent, which the token may not see. */
async function parentOf(
  { view, signal }: Pick<ApiRequest, "view" | "signal">,
  { ref, entry }: SessionState,
): Promise<{ readonly key: string; readonly sessionId: string | null; readonly isHere: boolean } | null> {
  const key = entry.spawnedBy;
  if (typeof key !== "string" || key === "") return null;
  const agentId = agentOfKey(key) ?? ref.agentId;
  const at = { namespace: ref.namespace, agentId, key };
  const parent = view.isSeen(agentId) ? await loadNamed(view.store(agentId), at, signal) : null;
  return { key, sessionId: parent?.sessionId ?? null, isHere: parent !== null };
}

async function lossesOf(
  store: SessionStore,
  { ref }: SessionState,
  to: HandOffTarget,
  signal: AbortSignal,
): Promise<readonly { readonly what: string; readonly kind: string; readonly records: number }[]> {
  const [{ exportSession }, { ExportLosses }] = await Promise.all([
    import("@throughline/transfer"),
    import("@throughline/transfer/internal"),
  ]);
  const losses = new ExportLosses();
  for await (const _piece of exportSession(store, ref, { to, signal, onRemark: (remark) => void losses.take(remark) }));
  return losses.losses();
}

/** Entries may come from clients, so each member is checked. */
function handedOffOf(
  value: unknown,
): readonly { readonly format: string; readonly sessionId: string; readonly path: string }[] {
  if (!Array.isArray(value)) return [];
  return (value as readonly unknown[]).flatMap((each) => {
    const { format, sessionId, path } = isFields(each) ? each : {};
    const isWhole = typeof format === "string" && typeof sessionId === "string" && typeof path === "string";
    return isWhole ? [{ format, sessionId, path }] : [];
  });
}
