import type { StoredRecord } from "@throughline/core";
import fc from "fast-check";
import { storedRecords, type RecordSketch } from "./stored-records.ts";

/** Who writes the replies of a log, and what signs their thinking. */
export interface RichLogWriter {
  readonly api: string;
  readonly provider: string;
  readonly model: string;
  /** The signature of the thinking at a place; null for a format without any. */
  readonly signature: (place: number) => string | null;
}

const png = { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" };
const pdf = { type: "base64", media_type: "application/pdf", data: "aWs=" };

interface Turn {
  readonly asks: number;
  readonly with: "words" | "image" | "document";
  readonly before: boolean;
  readonly steps: readonly {
    readonly thinks: boolean;
    readonly says: boolean;
    readonly results: readonly ("text" | "error" | "empty" | "image")[];
  }[];
  readonly answers: boolean;
}

const turn: fc.Arbitrary<Turn> = fc.record({
  asks: fc.nat({ max: 999 }),
  with: fc.constantFrom("words", "image", "document"),
  before: fc.boolean(),
  steps: fc.array(
    fc.record({
      thinks: fc.boolean(),
      says: fc.boolean(),
      results: fc.array(fc.constantFrom("text", "text", "error", "empty", "image"), { minLength: 1, maxLength: 3 }),
    }),
    { maxLength: 3 },
  ),
  answers: fc.boolean(),
});

/**
 * Logs of one model in which nothing is wrong, with everything a conversation may hold: images, documents, instructions,
 * thinking, calls side by side, results that failed, say nothing or show something.
 */
export function richLogs(writer: RichLogWriter): fc.Arbitrary<StoredRecord[]> {
  return fc
    .array(turn, { minLength: 1, maxLength: 5 })
    .map((turns) => storedRecords(turns.flatMap((one, place) => sketches(one, place, writer))));
}

const said = (role: string, fields: Readonly<Record<string, unknown>>): RecordSketch => ({
  type: "message",
  message: { role, ...fields },
});

function sketches(one: Turn, place: number, { signature, ...writer }: RichLogWriter): RecordSketch[] {
  const words = { type: "text", text: `ask ${one.asks}` };
  const shown =
    one.with === "image" ? [png] : one.with === "document" ? [{ type: "document", source: pdf, title: "a" }] : [];
  const reply = (content: readonly object[]): RecordSketch =>
    said("assistant", { content, ...writer, stopReason: "stop" });
  const thinking = (step: number): object => {
    const seal = signature(place * 10 + step);
    return { type: "thinking", thinking: `hm ${step}`, ...(seal === null ? {} : { thinkingSignature: seal }) };
  };
  const steps = one.steps.flatMap(({ thinks, says, results }, step) => {
    const calls = results.map((_, index) => ({
      type: "toolCall",
      id: `c${place}${step}${index}`.padEnd(9, "x"),
      name: index === 1 ? "look" : "read",
      arguments: { step, index, path: "Größe 😀" },
    }));
    return [
      reply([...(thinks ? [thinking(step)] : []), ...(says ? [{ type: "text", text: `step ${step}` }] : []), ...calls]),
      ...results.map((kind, index) => resultOf(kind, String(calls[index]?.id), String(calls[index]?.name))),
    ];
  });
  return [
    ...(one.before ? [said("system", { content: "Be brief." })] : []),
    said("user", { content: shown.length === 0 ? words.text : [words, ...shown] }),
    ...steps,
    ...(one.answers ? [reply([thinking(9), { type: "text", text: "done" }])] : []),
  ];
}

function resultOf(kind: "text" | "error" | "empty" | "image", toolCallId: string, toolName: string): RecordSketch {
  const text = { type: "text", text: `${kind} of ${toolCallId}` };
  const content = { text: [text], error: [text], empty: [], image: [text, png] }[kind];
  return said("toolResult", { toolCallId, toolName, content, isError: kind === "error" });
}
