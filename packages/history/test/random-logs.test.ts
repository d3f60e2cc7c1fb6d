import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildContext } from "@throughline/history";
import { renderText } from "../src/render-text.ts";
import { walkBranch } from "../src/walk-branch.ts";
import { renderAnthropic, validateAnthropic } from "@throughline/history/anthropic";
import type { AnthropicRendering } from "../src/render-anthropic.ts";
import type { Context } from "@throughline/history";
import type { RepairRule } from "../src/repair.ts";
import { randomLog, validLog } from "./random-logs.ts";
import { runs } from "./test-runs.ts";

/** Of each property. */
const manyRuns = runs(500);

/** Every text a model is sent, joined with characters no test text holds. */
function sentText(rendering: AnthropicRendering): string {
  return rendering.messages
    .flatMap((message) =>
      message.content.flatMap((block) =>
        block.type === "text"
          ? [block.text]
          : block.type === "tool_result"
            ? (block.content ?? []).map((part) => (part.type === "text" ? part.text : ""))
            : [],
      ),
    )
    .join("\u0001");
}

/** The rules by which a whole record is not sent; every other one keeps its words. */
const dropping: ReadonlySet<RepairRule> = new Set([
  "failed-turn-dropped",
  "waiting-reply-left-out",
  "result-of-dropped-turn",
  "orphan-result",
  "duplicate-result",
  "unknown-role-removed",
]);

function lostTexts(context: Context, rendering: AnthropicRendering): string[] {
  const sent = sentText(rendering);
  const dropped = new Set(
    rendering.repairs.filter((repair) => dropping.has(repair.rule)).map((repair) => repair.recordId),
  );
  return context.messages
    .filter((message) => !dropped.has(message.recordId))
    .flatMap((message) =>
      message.content.flatMap((block) => (block.type === "text" ? [block.text.trim().toWellFormed()] : [])),
    )
    .filter((text) => !sent.includes(text));
}

describe("any log", () => {
  it("becomes messages the API takes: alternating, paired, with valid ids", () => {
    const trailing = fc.constantFrom("keep", "remove", "continue");
    fc.assert(
      fc.property(randomLog, trailing, fc.constantFrom("drop", "text"), (records, trailingAssistant, orphanResults) => {
        const { messages } = renderAnthropic(buildContext(records), { trailingAssistant, orphanResults });
        if (messages.length > 0)
          expect(validateAnthropic(messages, { allowsPrefill: trailingAssistant === "keep" })).toEqual([]);
      }),
      manyRuns,
    );
  });

  it("loses no text but of records that a repair says were dropped", () => {
    fc.assert(
      fc.property(randomLog, (records) => {
        const context = buildContext(records);
        expect(lostTexts(context, renderAnthropic(context))).toEqual([]);
      }),
      manyRuns,
    );
  });

  it("says each user's and assistant's words once", () => {
    fc.assert(
      fc.property(validLog, (records) => {
        const context = buildContext(records);
        expect(
          sentText(renderAnthropic(context, { trailingAssistant: "keep" }))
            .split("\u0001")
            .filter((text) => text !== "ok"),
        ).toEqual(
          context.messages
            .filter((message) => message.role !== "toolResult")
            .flatMap((message) => message.content.flatMap((block) => (block.type === "text" ? [block.text] : []))),
        );
      }),
      manyRuns,
    );
  });

  it("has a way to its head that visits no record twice, from wherever one looks", () => {
    fc.assert(
      fc.property(randomLog, fc.nat({ max: 45 }), (records, place) => {
        const { path } = walkBranch(records, `r${place}`);
        expect(new Set(path.map((record) => record.seq)).size).toBe(path.length);
      }),
      manyRuns,
    );
  });

  it("counts every message of its kinds once: in the context, or left out with a reason", () => {
    fc.assert(
      fc.property(randomLog, (records) => {
        const context = buildContext(records);
        const seqs = context.messages.map((message) => message.seq);
        expect(new Set(seqs).size).toBe(seqs.length);
        const isOmitted = (seq: number): boolean =>
          context.omitted.some((range) => range.fromSeq <= seq && seq <= range.toSeq);
        for (const record of records) {
          if (record.type === "message" && !record.side)
            expect(seqs.includes(record.seq) !== isOmitted(record.seq), `seq ${record.seq}`).toBe(true);
        }
      }),
      manyRuns,
    );
  });

  it("gives the same messages every time, and leaves its records alone", () => {
    fc.assert(
      fc.property(randomLog, (records) => {
        const before = JSON.stringify(records);
        const first = renderAnthropic(buildContext(records), { trailingAssistant: "keep" });
        expect(renderAnthropic(buildContext(records), { trailingAssistant: "keep" })).toEqual(first);
        expect(JSON.stringify(records)).toBe(before);
      }),
      runs(150),
    );
  });

  it("becomes text in which only messages begin at the start of a line", () => {
    fc.assert(
      fc.property(randomLog, (records) => {
        for (const line of renderText(buildContext(records), { thinking: true }).split(
          /\r\n|[\n\r\v\f\u0085\u2028\u2029]/,
        )) {
          expect(line).toMatch(/^$|^ {2}|^\[[A-Z][^\n]*\]: /);
        }
      }),
      manyRuns,
    );
  });
});

describe("a log in which nothing is wrong", () => {
  it("is not changed at all", () => {
    fc.assert(
      fc.property(validLog, (records) => {
        const rendering = renderAnthropic(buildContext(records), { trailingAssistant: "keep" });
        expect(rendering.repairs).toEqual([]);
        expect(rendering.callIds.size).toBe(0);
      }),
      manyRuns,
    );
  });

  it(
    "is valid wherever it is cut, and what was sent before stays the beginning of what is sent after",
    { tags: ["slow"] },
    () => {
      fc.assert(
        fc.property(validLog, (records) => {
          let before: readonly unknown[] = [];
          for (let length = 1; length <= records.length; length++) {
            const { messages, repairs } = renderAnthropic(buildContext(records.slice(0, length)), {
              trailingAssistant: "keep",
            });
            expect(validateAnthropic(messages)).toEqual([]);
            if (repairs.length > 0) continue;
            // The last message may grow by further results.
            expect(messages.slice(0, Math.max(0, before.length - 1))).toEqual(before.slice(0, -1));
            before = messages;
          }
        }),
        runs(100),
      );
    },
  );
});
