import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { findRecordProblem } from "../src/find-record-problem.ts";

// The same rules as a schema. The check is written by hand because replay runs it on every record.
const text = z.string();
const known = <Shape extends z.ZodType>(
  names: readonly string[],
  shapes: readonly Shape[],
  open: z.ZodType,
  field: string,
) =>
  z.unknown().superRefine((value, context) => {
    const isFields = typeof value === "object" && value !== null && !Array.isArray(value);
    const name = isFields ? (value as Record<string, unknown>)[field] : undefined;
    const index = typeof name === "string" ? names.indexOf(name) : -1;
    const result = (shapes[index] ?? open).safeParse(value);
    if (!result.success) context.addIssue({ code: "custom", message: result.error.message });
  });

const fields = z.looseObject({});
const image = z.looseObject({ source: z.unknown() }).superRefine((block, context) => {
  const hasSource = fields.safeParse(block.source).success && !Array.isArray(block.source);
  const hasData = typeof block["data"] === "string" && typeof block["mimeType"] === "string";
  if (!hasSource && !hasData) context.addIssue({ code: "custom", message: "image" });
});
const imageBlock = z.unknown().superRefine((value, context) => {
  const block = typeof value === "object" && value !== null ? { source: undefined, ...value } : value;
  if (!image.safeParse(block).success) context.addIssue({ code: "custom", message: "image" });
});
const plainObject = z.unknown().refine((value) => typeof value === "object" && value !== null && !Array.isArray(value));
const block = known(
  ["text", "thinking", "image", "toolCall"],
  [
    z.looseObject({ text }),
    z.looseObject({ thinking: text }),
    imageBlock,
    z.looseObject({ id: text, name: text, arguments: plainObject }),
  ],
  z.looseObject({ type: text }),
  "type",
);
const content = z.union([text, z.array(block)]);
const message = known(
  ["user", "assistant", "custom", "toolResult", "bashExecution"],
  [
    z.looseObject({ content }),
    z.looseObject({ content }),
    z.looseObject({ content }),
    z.looseObject({ toolCallId: text, content, isError: z.boolean().optional() }),
    z.looseObject({ command: text, output: text }),
  ],
  z.looseObject({ role: text }),
  "role",
);
const base = { type: text, id: text, parentId: text.nullable(), timestamp: text };
const record = known(
  [
    "message",
    "compaction",
    "branch_summary",
    "custom",
    "custom_message",
    "model_change",
    "thinking_level_change",
    "label",
    "checkpoint",
  ],
  [
    z.looseObject({ ...base, message }),
    z
      .looseObject({ ...base, summary: text, firstKeptEntryId: text, tokensBefore: z.any() })
      .refine((value) => typeof value.tokensBefore === "number"),
    z.looseObject({ ...base, fromId: text, summary: text }),
    z.looseObject({ ...base, customType: text }),
    z.looseObject({ ...base, customType: text, content }),
    z.looseObject({ ...base, provider: text, modelId: text }),
    z.looseObject({ ...base, thinkingLevel: text }),
    z.looseObject({ ...base, targetId: text }),
    z.looseObject({ ...base, checkpoint: z.looseObject({ summary: text }) }),
  ],
  z.looseObject(base),
  "type",
);

const stem = { id: "a", parentId: null, timestamp: "2026-01-01T00:00:00.000Z" };
const valid: readonly Record<string, unknown>[] = [
  { ...stem, type: "message", message: { role: "user", content: "hi" } },
  {
    ...stem,
    type: "message",
    message: {
      role: "user",
      content: [
        { type: "image", data: "eA==", mimeType: "image/png" },
        { type: "image", source: {} },
      ],
    },
  },
  {
    ...stem,
    type: "message",
    message: {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "" },
        { type: "text", text: "x" },
        { type: "toolCall", id: "1", name: "ls", arguments: {} },
        { type: "new" },
      ],
    },
  },
  {
    ...stem,
    type: "message",
    message: { role: "toolResult", toolCallId: "1", content: [{ type: "text", text: "" }], isError: false },
  },
  { ...stem, type: "message", message: { role: "bashExecution", command: "ls", output: "" } },
  { ...stem, type: "message", message: { role: "of-the-future" } },
  { ...stem, type: "compaction", summary: "s", firstKeptEntryId: "a", tokensBefore: 1 },
  { ...stem, type: "branch_summary", fromId: "a", summary: "" },
  { ...stem, type: "custom", customType: "x" },
  { ...stem, type: "custom_message", customType: "x", content: [] },
  { ...stem, type: "model_change", provider: "p", modelId: "m" },
  { ...stem, type: "thinking_level_change", thinkingLevel: "off" },
  { ...stem, type: "label", targetId: "a" },
  { ...stem, type: "checkpoint", checkpoint: { summary: "s" } },
  { ...stem, type: "of-the-future" },
];

/** Every place in a value: the keys that lead to it. */
function places(value: unknown, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (typeof value !== "object" || value === null) return [path];
  const inner = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  return [path, ...inner.flatMap((key) => places((value as Record<string | number, unknown>)[key], [...path, key]))];
}

function mutate(value: unknown, path: readonly (string | number)[], change: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return change;
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<string | number, unknown>;
  if (rest.length === 0 && change === undefined && !Array.isArray(copy)) delete copy[key];
  else copy[key] = mutate(copy[key], rest, change);
  return copy;
}

describe("findRecordProblem", () => {
  it.each(valid)("accepts %j", (value) => {
    expect(findRecordProblem(value)).toBeNull();
    expect(record.safeParse(value).success).toBe(true);
  });

  it.each([
    [{ ...stem, type: "message", message: { role: "user", content: [{ type: "text" }] } }, "message.content.0.text"],
    [
      {
        ...stem,
        type: "message",
        message: { role: "assistant", content: [{ type: "toolCall", id: "1", name: "x", arguments: "{}" }] },
      },
      "message.content.0.arguments",
    ],
    [{ ...stem, type: "message" }, "message"],
    [{ ...stem, type: "compaction", summary: "s" }, "firstKeptEntryId"],
    [{ ...stem, type: "x", parentId: 3 }, "parentId"],
    [null, ""],
  ])("names the place in %j", (value, path) => {
    expect(findRecordProblem(value)?.path).toBe(path);
  });

  it("agrees with the schema on valid records with one or two things changed", () => {
    const change = fc.constantFrom<unknown>(
      undefined,
      null,
      1,
      true,
      "",
      "text",
      "user",
      "message",
      [],
      {},
      [null],
      [{ type: "text" }],
    );
    const place = fc.nat();
    let invalid = 0;
    fc.assert(
      fc.property(
        fc.constantFrom(...valid),
        place,
        change,
        place,
        change,
        fc.boolean(),
        (start, at, what, at2, what2, isTwice) => {
          const one = mutate(start, places(start)[at % places(start).length] ?? [], what);
          const value = isTwice ? mutate(one, places(one)[at2 % places(one).length] ?? [], what2) : one;
          const accepted = findRecordProblem(value) === null;
          if (!accepted) invalid++;
          expect(accepted, JSON.stringify(value)).toBe(record.safeParse(value).success);
        },
      ),
      { numRuns: 5000 },
    );
    expect(invalid).toBeGreaterThan(1000);
  });
});
