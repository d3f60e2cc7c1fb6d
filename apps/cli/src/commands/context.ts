import { setImmediate as pause } from "node:timers/promises";
import { readWindow } from "@throughline/core";
import { historyTargets, omittedWithWindow } from "@throughline/history/internal";
import type { Context } from "@throughline/history";
import type { TargetName } from "@throughline/history/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { measureContext, namedModel, nextContext } from "@throughline/http-api/internal/context-size";
import { contextRenderer } from "../context-rendering.ts";
import type { ContextRendering } from "../context-rendering.ts";
import { contextSizeLines } from "../context-size-text.ts";
import { counted } from "../counted.ts";
import { blocksText, modelName, resolveSession } from "@throughline/core/internal";
import { withinMemory } from "@throughline/core/internal/node";
import { LongText } from "../terminal-safe.ts";

interface ContextOptions {
  readonly provider?: string;
  readonly model?: string;
  readonly window?: number;
  readonly messages?: boolean;
}

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as ContextOptions;
  const provider = options.provider ?? "neutral";
  const render = contextRenderer(provider);
  const { output, scope, signal } = context;
  const store = await context.openStore("read");
  const found = await resolveSession(store, input.arguments[0] ?? "", scope, { signal });
  const { state, records } = await readWindow(withinMemory(store), found.ref, { signal });
  // Measuring blocks the event loop, so a pending interrupt is handled first.
  await pause();
  signal.throwIfAborted();
  const { built, windowTokens, learned } = await nextContext(state, records, options.window);
  const target = options.model === undefined ? null : namedModel(options.model);
  const rendering = render(
    built,
    target === null || target.provider === null ? null : { ...target, provider: target.provider },
  );
  const size = await measureContext(built, {
    model: target,
    windowTokens,
    learned,
    onFallback: (vocabulary) =>
      output.note(`The vocabulary ${vocabulary} cannot be loaded; tokens are estimated roughly.`),
  });
  const omitted = omittedWithWindow(built, records);
  const model = options.model ?? (built.model === null ? null : modelName(built.model.provider, built.model.modelId));
  for (const finding of built.findings) output.finding({ ...finding, key: state.ref.key });
  const document = {
    kind: "context",
    key: state.ref.key,
    sessionId: state.sessionId,
    provider,
    model,
    thinkingLevel: built.thinkingLevel,
    headId: built.headId,
    lastSeq: state.head.lastSeq,
    recordsInContext: built.recordsInContext,
    messages: rendering.messages,
    system: rendering.system,
    gauge: size.gauge,
    breakdown: size.breakdown,
    repairs: rendering.repairs,
    omitted,
  };
  if (output.isJson) {
    await output.largeObject(document);
    return 0;
  }
  const [text] = rendering.messages;
  if (text instanceof LongText) {
    await output.longText(text);
    return 0;
  }
  await output.line({ text: state.ref.key, style: "bold" }, model === null ? "" : `  ${model}`);
  const windowSource = options.window === undefined ? "the session's entry" : "--window";
  for (const line of contextSizeLines(size, { windowSource, nowMs: Date.now() })) await output.line(line);
  await print(context, provider, { ...built, omitted }, rendering, options.messages === true);
  return 0;
}

async function print(
  { output }: CommandContext,
  provider: string,
  built: Context,
  { messages, repairs }: ContextRendering,
  isWithMessages: boolean,
): Promise<void> {
  const sent = provider === "neutral" ? "" : `, ${messages.length} for ${provider}`;
  await output.line(`${counted(built.recordsInContext, "message")}${sent}`);
  for (const { fromSeq, toSeq, reason } of built.omitted)
    await output.line({ text: `left out: ${fromSeq} to ${toSeq}, ${reason}`, style: "dim" });
  const target = provider === "neutral" ? (built.model?.provider ?? null) : provider;
  const shown = provider === "neutral" ? repairsFor(built, target) : repairs;
  if (shown !== null) await output.line(`${counted(shown.length, "repair")} for ${target}`);
  for (const line of repairLines(shown ?? [], built)) await output.line(line);
  if (!isWithMessages) {
    await output.line({ text: "--messages prints the messages, --json everything", style: "dim" });
    return;
  }
  for (const message of built.messages) {
    await output.line("");
    await output.line({ text: `#${message.seq} ${message.role}`, style: "cyan" });
    await output.line(blocksText(message.content));
  }
}

function repairsFor(built: Context, provider: string | null): ContextRendering["repairs"] | null {
  const target = historyTargets.get(provider as TargetName);
  if (target === undefined || built.model === null) return null;
  return target.render(built, { target: built.model }).repairs;
}

const shownPlaces = 3;

function repairLines(repairs: ContextRendering["repairs"], { messages }: Context): readonly string[] {
  const seqs = new Map(messages.map(({ recordId, seq }) => [recordId, seq]));
  const byRule = new Map<string, (number | string)[]>();
  for (const { rule, recordId } of repairs)
    byRule.set(rule, [...(byRule.get(rule) ?? []), ...(recordId === null ? [] : [seqs.get(recordId) ?? recordId])]);
  const counts = Map.groupBy(repairs, ({ rule }) => rule);
  return [...counts]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .map(([rule, all]) => {
      const places = byRule.get(rule) ?? [];
      const named = places.slice(0, shownPlaces).map((place) => (typeof place === "number" ? `#${place}` : place));
      const more = places.length > named.length ? ", …" : "";
      return `  ${String(all.length).padStart(5)}  ${rule}${named.length === 0 ? "" : `  ${named.join(", ")}${more}`}`;
    });
}
