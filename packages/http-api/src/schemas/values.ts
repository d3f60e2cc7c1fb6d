import { z } from "zod";

export function queryInteger(min: number, max: number = Number.MAX_SAFE_INTEGER): z.ZodType<number> {
  return z
    .string()
    .regex(/^\d{1,16}$/, "a whole number is expected")
    .transform(Number)
    .pipe(z.int().min(min).max(max));
}

export function queryFlag(): z.ZodType<boolean> {
  return z
    .enum(["true", "false"])
    .transform((text) => text === "true")
    .pipe(z.boolean());
}

/** Reads a list with commas between its members. */
export function commaList<Member extends string>(member: z.ZodType<Member, string>): z.ZodType<readonly Member[]> {
  return z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(member));
}

export const atMs: z.ZodInt = z.int().describe("UTC milliseconds");
export const seq: z.ZodInt = z.int().min(0);

/** Accepts any JSON object and passes its members on unchanged, because they belong to the caller. */
export const openObject: z.ZodType<Readonly<Record<string, unknown>>> = z
  .custom<Readonly<Record<string, unknown>>>(
    (value) => typeof value === "object" && value !== null && !Array.isArray(value),
    "an object is expected",
  )
  .meta({ type: "object" });

/**
 * Describes a list as JSON. With `accept: application/x-ndjson` each item is a line, and a line of kind `end` marks a
 * complete answer.
 */
export function listOf(item: z.ZodType, members: z.ZodRawShape = {}): z.ZodObject {
  return z.looseObject({
    kind: z.literal("list"),
    items: z.array(item),
    count: z.int().min(0),
    nextCursor: z.string().nullable().describe("asks for the next page; null: there is none"),
    ...members,
  });
}
