import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { defineTool, type AgentToolCall } from "@throughline/core";

const call: AgentToolCall = { signal: new AbortController().signal, callId: "call-1" };
const weather = { name: "weather", description: "The weather of a city." };

const tools = {
  zod: defineTool({
    ...weather,
    input: z.object({ city: z.string(), days: z.number().int().optional() }),
    run: (args) => {
      expectTypeOf(args).toEqualTypeOf<{ city: string; days?: number | undefined }>();
      return `${args.city} ${args.days ?? 1}`;
    },
  }),
  valibot: defineTool({
    ...weather,
    input: toStandardJsonSchema(v.object({ city: v.string(), days: v.optional(v.pipe(v.number(), v.integer())) })),
    run: (args) => {
      expectTypeOf(args).toEqualTypeOf<{ city: string; days?: number | undefined }>();
      return `${args.city} ${args.days ?? 1}`;
    },
  }),
  arktype: defineTool({
    ...weather,
    input: type({ city: "string", "days?": "number.integer" }),
    run: (args) => {
      expectTypeOf(args).toEqualTypeOf<{ city: string; days?: number }>();
      return `${args.city} ${args.days ?? 1}`;
    },
  }),
  "JSON Schema": defineTool({
    ...weather,
    input: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer" }, unit: { enum: ["C", "F"] } },
      required: ["city"],
      additionalProperties: false,
    },
    run: (args) => {
      expectTypeOf(args.city).toEqualTypeOf<string>();
      expectTypeOf(args.days).toEqualTypeOf<number | undefined>();
      expectTypeOf(args.unit).toEqualTypeOf<"C" | "F" | undefined>();
      return `${args.city} ${args.days ?? 1}`;
    },
  }),
};

describe.each(Object.entries(tools))("a tool described with %s", (_library, tool) => {
  it("states JSON Schema of an object to the model", () => {
    const { inputSchema, ...named } = tool.definition;
    expect(named).toEqual(weather);
    expect(inputSchema).toMatchObject({
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer" } },
      required: ["city"],
    });
    expect(inputSchema).not.toHaveProperty("$schema");
  });

  it("runs with arguments that fit", async () => {
    expect(await tool.run({ city: "Bern", days: 3 }, call)).toBe("Bern 3");
  });

  it.each([
    ["a missing one", {}, /city/],
    ["one of another type", { city: "Bern", days: "three" }, /days/],
  ])("answers %s with the place, and does not run", async (_case, args, place) => {
    expect(await tool.run(args, call)).toMatchObject({ isError: true, content: expect.stringMatching(place) });
  });
});

describe("a tool", () => {
  it("gets the values that its schema makes", async () => {
    const tool = defineTool({
      ...weather,
      input: z.object({ city: z.string().trim(), days: z.number().default(7) }),
      run: ({ city, days }) => `${city} ${days}`,
    });
    expect(await tool.run({ city: " Bern " }, call)).toBe("Bern 7");
  });

  it("waits for a check that takes its time, and names a nested place", async () => {
    const tool = defineTool({
      ...weather,
      input: z.object({ stops: z.array(z.object({ city: z.string().refine(async (city) => city !== "Atlantis") })) }),
      run: () => "ran",
    });
    const result = await tool.run({ stops: [{ city: "Bern" }, { city: "Atlantis" }] }, call);
    expect(result).toMatchObject({ isError: true, content: expect.stringContaining("arguments.stops[1].city:") });
  });

  it("takes the JSON Schema beside a schema that makes none", async () => {
    const tool = defineTool({
      ...weather,
      input: v.object({ city: v.string() }),
      inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
      run: ({ city }) => city,
    });
    expect(tool.definition.inputSchema).toMatchObject({ required: ["city"] });
    expect(await tool.run({ city: 7 }, call)).toMatchObject({ isError: true });
  });
});

describe("a definition that is none", () => {
  const run = (): string => "ran";
  const cases: readonly (readonly [string, () => unknown, RegExp])[] = [
    [
      "a misspelt option",
      () => defineTool({ ...weather, inputs: {}, run } as never),
      /`inputs` is not an option.*`input`/,
    ],
    ["no function", () => defineTool({ ...weather, input: { type: "object" } } as never), /`run`/],
    ["no name", () => defineTool({ ...weather, name: " ", input: { type: "object" }, run }), /`name`/],
    [
      "a schema of a text",
      () => defineTool({ ...weather, input: z.string() as never, run }),
      /must describe an object/,
    ],
    [
      "JSON Schema of a list",
      () => defineTool({ ...weather, input: { type: "array" } as never, run }),
      /must describe an object/,
    ],
    [
      "a schema without JSON Schema",
      () => defineTool({ ...weather, input: v.object({}), run }),
      /makes no JSON Schema \(valibot\)/,
    ],
    [
      "a schema that throws",
      () => defineTool({ ...weather, input: z.object({ big: z.bigint() }), run }),
      /no JSON Schema can be made from `input` of "weather"/,
    ],
  ];
  it.each(cases)("%s is refused when the tool is made", (_case, define, message) => {
    expect(define).toThrow(message);
    expect(define).toThrow(expect.objectContaining({ code: "INPUT_INVALID" }));
  });
});
