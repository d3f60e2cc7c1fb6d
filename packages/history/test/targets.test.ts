import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildContext } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import type { Context, HistoryTarget } from "@throughline/history";
import type { Rendering } from "../src/replay-history.ts";
import type { RenderOptions } from "../src/render-options.ts";
import type { RepairRule } from "../src/repair.ts";
import { randomLog, validLog } from "./random-logs.ts";
import { runs } from "./test-runs.ts";

const targets = [...historyTargets.values()].map((target) => [target.name, target] as const);

/** By these rules a whole record is not sent; every other one keeps its words. */
const dropping: ReadonlySet<RepairRule> = new Set<RepairRule>([
  "failed-turn-dropped",
  "waiting-reply-left-out",
  "result-of-dropped-turn",
  "orphan-result",
  "duplicate-result",
  "unknown-role-removed",
]);

/** Everything a model reads, in the order it is sent. */
function sentText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return "";
  return Object.values(value).map(sentText).join("\u0001");
}

function lostTexts(context: Context, { repairs, messages }: Rendering<unknown>): string[] {
  const sent = sentText(messages);
  const dropped = new Set(repairs.filter(({ rule }) => dropping.has(rule)).map(({ recordId }) => recordId));
  return context.messages
    .filter(({ recordId }) => !dropped.has(recordId))
    .flatMap(({ content }) =>
      content.flatMap((block) => (block.type === "text" ? [block.text.trim().toWellFormed()] : [])),
    )
    .filter((text) => !sent.includes(text));
}

const targetModels = fc.constantFrom<RenderOptions["target"]>(
  undefined,
  null,
  { provider: "anthropic", modelId: "one" },
  { provider: "google", modelId: "gemini-3-pro" },
);

const options: fc.Arbitrary<RenderOptions> = fc
  .record({
    target: targetModels,
    orphanResults: fc.constantFrom("drop", "text"),
    media: fc.constantFrom("carry", "marker"),
    system: fc.constantFrom(null, "Be brief."),
  })
  .map(({ target, ...rest }) => (target === undefined ? rest : { ...rest, target }));

function modelOf(context: Context, { target }: RenderOptions): string | null {
  return (target === undefined ? context.model : target)?.modelId ?? null;
}

describe.each(targets)("any log for %s", (_name, target: HistoryTarget) => {
  it("becomes messages the provider takes", () => {
    fc.assert(
      fc.property(randomLog, options, (records, asked) => {
        const context = buildContext(records);
        const { messages } = target.render(context, asked);
        // The system prompt alone asks nothing.
        const isAsking = target.render(context, { ...asked, system: null }).messages.length > 0;
        if (isAsking) expect(target.validate(messages, modelOf(context, asked))).toEqual([]);
      }),
      runs(350),
    );
  });

  it("loses no words but those of records that a repair says were dropped", () => {
    fc.assert(
      fc.property(randomLog, options, (records, asked) => {
        const context = buildContext(records);
        expect(lostTexts(context, target.render(context, asked))).toEqual([]);
      }),
      runs(350),
    );
  });

  it("is changed in nothing where nothing is wrong, but for what the provider writes otherwise", () => {
    const shaping: ReadonlySet<RepairRule> = new Set<RepairRule>([
      "call-id-changed",
      "continuation-added",
      "reply-added",
      "signature-replaced",
    ]);
    fc.assert(
      fc.property(validLog, (records) => {
        const { repairs } = target.render(buildContext(records));
        expect(repairs.filter(({ rule }) => !shaping.has(rule))).toEqual([]);
      }),
      runs(100),
    );
  });

  it("gives back each call's id in the log for the id that was sent", () => {
    fc.assert(
      fc.property(randomLog, (records) => {
        const context = buildContext(records);
        const logged = new Set(
          context.messages.flatMap(({ content }) =>
            content.flatMap((block) => (block.type === "toolCall" ? [block.id] : [])),
          ),
        );
        const { callIds } = target.render(context);
        for (const original of callIds.values()) expect(logged.has(original)).toBe(true);
      }),
      runs(100),
    );
  });
});
