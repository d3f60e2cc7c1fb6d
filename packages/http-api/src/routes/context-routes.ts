import { readWindow } from "@throughline/core";
import { runInSlices } from "@throughline/core/internal";
import { withinMemory } from "@throughline/core/internal/node";
import type { CompactionSettings } from "@throughline/compaction";
import { settingsForWindow } from "@throughline/compaction/internal";
import { historyTargets, omittedWithWindow, renderSteps } from "@throughline/history/internal";
import type { Context, HistoryTarget } from "@throughline/history";
import type { TargetName } from "@throughline/history/internal";
import { readFilesOf } from "@throughline/session/internal";
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
    description:
      "`provider=neutral`, which holds without it, gives the messages as they are kept. For a provider, the bytes of files are in the messages, within its limits; `repairs` names each file that is left out, and why.",
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
      const target = historyTargets.get(provider as TargetName);
      const rendered =
        target === undefined
          ? { system: null, messages: built.messages, repairs: [] }
          : await render(built, target, {
              ...(named === undefined ? {} : { target: renderedModel(named) }),
              files: await readFilesOf({ store: view.store(at.agentId), ref: at }, records, target.mapping.rules),
            });
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
        compactsAtTokens: compactsAt(context.summaries.settings, windowTokens),
        omitted: omittedWithWindow(built, records),
      });
    },
  }),
];

type RenderOptions = NonNullable<Parameters<typeof renderSteps>[2]>;

function renderedModel(named: string): NonNullable<RenderOptions["target"]> | null {
  const { provider, modelId } = namedModel(named);
  return provider === null ? null : { provider, modelId };
}

/** The settings may leave compaction to a call that is too long. */
function compactsAt(settings: CompactionSettings, windowTokens: number | null): number | null {
  return settings.inAdvance === false ? null : settingsForWindow(settings, windowTokens).triggerTokens;
}

async function render(
  built: Context,
  { mapping }: HistoryTarget,
  options: RenderOptions,
): Promise<{
  readonly system: string | null;
  readonly messages: readonly unknown[];
  readonly repairs: readonly unknown[];
}> {
  const { system, messages, repairs } = await runInSlices(renderSteps(built, mapping, options));
  return { system, messages, repairs };
}
