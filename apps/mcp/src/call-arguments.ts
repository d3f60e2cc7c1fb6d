import { systemClock } from "@throughline/core/internal";
import { z } from "zod";
import { plainName } from "./result-text.ts";
import { CallRefusal } from "./tool-failure.ts";

/** Rejects unknown arguments, so that a misspelled name does not go unnoticed. */
export function argumentsOf<Shape extends z.ZodRawShape>(shape: Shape): z.ZodObject<Shape, z.core.$strict> {
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === "unrecognized_keys"
        ? // The names come from the model and may have any length, so only five are printed, each cut.
          `Unknown arguments: ${issue.keys
            .slice(0, 5)
            .map((name) => JSON.stringify(plainName(name, 40)))
            .join(", ")}`
        : undefined,
  });
}

/** JSON numbers are exact only as integers, so fractions are refused. */
export function wholeNumber(min: number, max: number = Number.MAX_SAFE_INTEGER): z.ZodInt {
  return z.int().min(min).max(max);
}

export const sessionArguments: { readonly key: z.ZodString; readonly agent: z.ZodOptional<z.ZodString> } = {
  key: z.string().min(1).max(512).describe("The key of a session, as search_sessions and list_sessions give it."),
  agent: z.string().min(1).max(64).optional().describe("Its agent, where a result names one beside the key."),
};

const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Converts a date, a date and time, or an age such as `12h`, `30d`, `2w` to UTC milliseconds. */
export function timeOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, count, unit] = /^(\d{1,6})([hdw])$/.exec(text) ?? [];
  if (count !== undefined) return systemClock.nowMs() - Number(count) * (unitMs[unit ?? ""] ?? 0);
  const atMs = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isFinite(atMs)) return atMs;
  throw new CallRefusal(
    `${name} must be a date such as 2026-03-01, a time such as 2026-03-01T12:00Z, or an age: 12h, 30d, 2w.`,
  );
}
