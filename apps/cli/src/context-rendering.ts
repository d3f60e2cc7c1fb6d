import { historyTargets, renderTextPieces } from "@throughline/history/internal";
import type { Context, Repair } from "@throughline/history";
import type { TargetName } from "@throughline/history/internal";
import { usageError } from "./error-report.ts";
import { LongText } from "./terminal-safe.ts";

export interface ContextRendering {
  readonly system: string | null;
  readonly messages: readonly unknown[];
  readonly repairs: readonly Repair[];
}

type Renderer = (context: Context, model: NonNullable<Context["model"]> | null) => ContextRendering;

/**
 * Selects the renderer: `neutral` keeps the context as is, `text` makes one text. Any other provider's shapes depend on
 * the given model, else on the context's model.
 * @throws {ThroughlineError} USAGE for an unknown name
 */
export function contextRenderer(provider: string): Renderer {
  if (provider === "neutral") return ({ messages }) => ({ system: null, messages, repairs: [] });
  if (provider === "text")
    return (context) => ({ system: null, messages: [new LongText(() => renderTextPieces(context))], repairs: [] });
  const target = historyTargets.get(provider as TargetName);
  if (target !== undefined)
    return (context, model) => {
      const { system, messages, repairs } = target.render(context, model === null ? {} : { target: model });
      return { system, messages, repairs };
    };
  const available = ["neutral", ...historyTargets.keys(), "text"];
  throw usageError(`--provider ${JSON.stringify(provider)} is none of ${available.join(", ")}.`, {
    provider,
    available,
  });
}
