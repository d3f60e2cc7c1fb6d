import { readWindow } from "@throughline/core";
import { runInSlices } from "@throughline/core/internal";
import { withinMemory } from "@throughline/core/internal/node";
import { historyTargets, omittedWithWindow, renderSteps } from "@throughline/history/internal";
import type { Context } from "@throughline/history";
import type { TargetName } from "@throughline/history/internal";
import { z } from "zod";
import { measureContext, namedModel, nextContext } from "../context-size.ts";
import { largeJson } from "../http/answer.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { contextSchema } from "../schemas/reading.ts";
import { sessionQuery } from "../schemas/session.ts";
import { queryInteger } from "../schemas/values.ts";

const providers = ["neutral", ...historyTargets.keys()] as const;

export const contextRoutes: readonly RouteDefinition[] = [
  route({
    id: "getContext",
    method: "GET",
    path: "/sessions/{session}/context",
    summary: "The messages that a model is given next, valid for its provider, and how full they make its window.",
    description: "`provider=neutral`, which holds without it, gives the messages as they are kept.",
    scope: "read",
    query: z.strictObject({
      ...sessionQuery,
      provider: z.enum(providers as readonly [string, ...string[]]).exactOptional(),
      model: z.string().max(200).exactOptional().describe("`provider/name` or a name; the session's own without it"),
      window: queryInteger(1).exactOptional().describe("the model's window in tokens; the session's own without it"),
    }),
    answers: { 200: { description: "The context.", schema: contextSchema } },
    errors: ["SESSION_NOT_FOUND", "RECORD_FROM_NEWER_VERSION", "MEMORY_SHORT"],
    handle: async ({ context, ref, view, query, signal }) => {
      const at = ref();
      const { provider = "neutral", model: named } = query;
      const { state, records } = await readWindow(withinMemory(view.store(at.agentId)), at, { signal });
      const { built, windowTokens, learned } = await nextContext(state, records, query.window);
      const { model: own, thinkingLevel, headId, recordsInContext } = built;
      const { gauge, breakdown } = await measureContext(built, {
        model: named === undefined ? null : namedModel(named),
        windowTokens,
        learned,
        estimator: context.summaries.estimator,
      });
      const rendered = await render(built, provider, named);
      return largeJson(200, {
        kind: "context",
        key: at.key,
        sessionId: state.sessionId,
        provider,
        model: named ?? (own === null ? null : `${own.provider}/${own.modelId}`),
        thinkingLevel,
        headId,
        lastSeq: state.head.lastSeq,
        recordsInContext,
        ...rendered,
        gauge,
        breakdown,
        omitted: omittedWithWindow(built, records),
      });
    },
  }),
];

async function render(
  built: Context,
  provider: string,
  named: string | undefined,
): Promise<{
  readonly system: string | null;
  readonly messages: readonly unknown[];
  readonly repairs: readonly unknown[];
}> {
  const target = historyTargets.get(provider as TargetName);
  if (target === undefined) return { system: null, messages: built.messages, repairs: [] };
  const { provider: by, modelId } = named === undefined ? { provider: null, modelId: "" } : namedModel(named);
  const options = by === null ? {} : { target: { provider: by, modelId } };
  const { system, messages, repairs } = await runInSlices(renderSteps(built, target.mapping, options));
  return { system, messages, repairs };
}
