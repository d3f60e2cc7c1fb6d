import type { StoredRecord } from "@throughline/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildContext } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import { limitContext } from "../src/limit-context.ts";
import { truncateResults } from "../src/truncate-results.ts";
import type { Context, HistoryTarget } from "@throughline/history";
import type { Rendering } from "../src/replay-history.ts";
import type { TruncatedContext, Truncation } from "../src/truncate-results.ts";
import { randomLog } from "./random-logs.ts";
import { openEnd } from "./sent-prefix.ts";
import { runs } from "./test-runs.ts";

const target = { provider: "anthropic", modelId: "one" };

/** Records that change what stood before them, as compactions and edits do. */
const changing: ReadonlySet<string> = new Set(["compaction", "reset", "context_edit", "custom"]);

/** True when the record is the next one of the same branch and leaves the rest as it was. */
function isPlainStep(record: StoredRecord, headId: string | null, known: ReadonlySet<string | null>): boolean {
  if (changing.has(record.type)) return false;
  return record.side || (record.parentId === headId && !known.has(record.id));
}

/**
 * A model was called where a reply comes next. A reply right after another one is a further part of it: where its calls'
 * results come after both, that shows.
 */
function isCallPoint(
  next: StoredRecord | undefined,
  headId: string | null,
  { messages }: Context,
  { repairs }: Rendering<unknown>,
): boolean {
  if (messages.at(-1)?.role === "assistant") return false;
  const message = next?.type === "message" && !next.side ? next.record["message"] : null;
  const { role, fragment, responseId } = (message ?? {}) as Readonly<Record<string, unknown>>;
  const isReply = role === "assistant" && fragment !== true && responseId === undefined && next?.parentId === headId;
  return isReply && repairs.every(({ rule }) => rule !== "continuation-added");
}

interface Call<Limited extends Context> {
  readonly rendering: Rendering<unknown>;
  readonly context: Limited;
  /** Whether something was compacted or edited since the call before. */
  readonly isChanged: boolean;
}

/** The calls of a conversation as it grows. */
function* calls<Limited extends Context>(
  records: readonly StoredRecord[],
  provider: HistoryTarget,
  limit: (context: Context) => Limited,
): Generator<Call<Limited>> {
  let headId: string | null = null;
  let isChanged = true;
  // Ids, and parents that were named before they came: a record of such an id changes the way to the head.
  const known = new Set<string | null>();
  for (const [index, record] of records.entries()) {
    if (!isPlainStep(record, headId, known)) isChanged = true;
    known.add(record.id).add(record.parentId);
    if (!record.side) headId = record.id;
    const context = limit(buildContext(records.slice(0, index + 1)));
    const rendering = provider.render(context, { target, trailingAssistant: "continue" });
    if (!isCallPoint(records[index + 1], headId, context, rendering)) continue;
    yield { rendering, context, isChanged };
    isChanged = false;
  }
}

function expectToGoOn(before: string, { rendering }: Call<Context>): string {
  expect(JSON.stringify(rendering.messages).slice(0, before.length)).toBe(before);
  return openEnd(rendering.messages);
}

const targets = [...historyTargets.values()].map((one) => [one.name, one] as const);

describe.each(targets)("for %s", (_name, provider) => {
  it("what was sent is the beginning of what is sent next, unless something was compacted or edited", () => {
    fc.assert(
      fc.property(randomLog, (records) => {
        let before = "";
        for (const call of calls(records, provider, (context) => context)) {
          before = expectToGoOn(call.isChanged ? "" : before, call);
        }
      }),
      runs(150),
    );
  });

  it("a limited window is valid and keeps its beginning between two cuts", () => {
    const limits = fc.record({ maxMessages: fc.integer({ min: 3, max: 12 }), pinFirstRequest: fc.boolean() });
    fc.assert(
      fc.property(randomLog, limits, (records, limit) => {
        let before = "";
        let cutBefore: number | undefined;
        for (const call of calls(records, provider, (context) => limitContext(context, limit))) {
          const { messages } = call.rendering;
          if (messages.length > 0) expect(provider.validate(messages, target.modelId)).toEqual([]);
          before = expectToGoOn(call.isChanged || call.context.cut?.metAtSeq !== cutBefore ? "" : before, call);
          cutBefore = call.context.cut?.metAtSeq;
        }
      }),
      runs(75),
    );
  });

  it("a truncated result is the same bytes in every later call, whatever the limit has become", () => {
    const sizes = fc.array(fc.integer({ min: 2, max: 12 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(randomLog, sizes, (records, limits) => {
        let recorded: readonly Truncation[] = [];
        let before = "";
        let step = 0;
        const truncate = (context: Context): TruncatedContext => {
          const maxChars = limits[step++ % limits.length] ?? 2;
          const truncated = truncateResults(context, { recorded, maxChars });
          recorded = truncated.truncations;
          return truncated;
        };
        for (const call of calls(records, provider, truncate)) {
          // A limit that shrinks may shorten what was sent whole: that is an edit, and said to be one.
          const isEdited = call.context.truncations.some(({ sentToSeq }) => sentToSeq !== null);
          before = expectToGoOn(call.isChanged || isEdited || limits.length > 1 ? "" : before, call);
        }
      }),
      runs(75),
    );
  });
});
