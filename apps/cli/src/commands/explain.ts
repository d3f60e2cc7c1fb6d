import { readCalls } from "@throughline/session";
import { callJson } from "@throughline/http-api/internal/json";
import type { ExplainedCall } from "@throughline/session/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted, grouped, sizeText } from "../counted.ts";
import { resolveSession } from "@throughline/core/internal";
import { MemoryBudget } from "@throughline/core/internal/node";
import { timeText } from "../time-text.ts";

interface ExplainOptions {
  readonly turn?: string;
  readonly tail?: number;
  /** Selects one call, counted from the last. Only the conversation sets it. */
  readonly nth?: number;
}

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as ExplainOptions;
  const { output, scope, signal } = context;
  const store = await context.openStore("read");
  const { ref } = await resolveSession(store, input.arguments[0] ?? "", scope, { signal });
  const budget = new MemoryBudget(ref);
  const { turn, nth, tail = nth } = options;
  const query = { ...(turn === undefined ? {} : { turn }), ...(tail === undefined ? {} : { tail }) };
  const { shown, hasCalls } = await readCalls(store, ref, query, {
    signal,
    onKeep: (records) => budget.add(records),
  });
  if (nth !== undefined && hasCalls && shown.length < nth) output.note("The session has fewer calls.");
  else
    for (const call of nth === undefined ? shown : shown.slice(0, 1)) {
      if (output.isJson) await output.object(callJson(call));
      else await print(context, call);
    }
  if (output.isJson) await output.end(shown.length);
  else if (!hasCalls)
    output.note(`${ref.key} has no record of a model call. Only calls that Throughline makes are recorded.`);
  return 0;
}

const shownChanges = 3;

async function print({ output }: CommandContext, call: ExplainedCall): Promise<void> {
  const { turnId, step, attempt, atMs, provider, model, fromSeq, toSeq, summaryId, changes, facts } = call;
  await output.line(
    { text: `${provider}/${model}`, style: "cyan" },
    {
      text: `  ${timeText(atMs)}  turn ${turnId}, call ${step}${attempt === 0 ? "" : `, attempt ${attempt + 1}`}`,
      style: "dim",
    },
  );
  await output.line(`  sent        ${counted(facts.messageCount, "message")}, from records #${fromSeq} to #${toSeq}`);
  const { cut } = facts;
  if (cut !== null) {
    const request = cut.requestSeq === null ? "" : `, except the request #${cut.requestSeq}`;
    await output.line(`  cut         before record #${cut.fromSeq}${request}: the history was longer than the window`);
  }
  if (summaryId !== null) await output.line(`  summarized  the earlier records, in ${summaryId}`);
  for (const { what, reason, beforeBytes, afterBytes, recordId } of changes.slice(0, shownChanges))
    await output.line(
      `  shortened   ${what} of ${recordId ?? "several records"}: ${sizeText(beforeBytes)} to ${sizeText(afterBytes)}, ${reason}`,
    );
  if (changes.length > shownChanges)
    await output.line(`              and ${grouped(changes.length - shownChanges)} more; --json lists all`);
  await output.line(`  tokens      ~${grouped(call.estimatedTokens)} estimated`);
  await output.line(`              ${actualText(call.actual)}`);
  await output.line(`  outcome     ${call.outcome}`);
  await output.line("");
}

function actualText(actual: ExplainedCall["actual"]): string {
  if (actual === null) return "not counted by the provider";
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = actual;
  const sent = grouped(input + cacheRead + cacheWrite);
  return `${sent} counted by the provider (${grouped(cacheRead)} from the cache), ${grouped(output)} in the answer`;
}
