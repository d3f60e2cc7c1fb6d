import { describe, expect, it } from "vitest";
import { createModel } from "@throughline/models";
import { anthropic } from "@throughline/models/anthropic";
import { offline } from "@throughline/models/offline";
import { ollama } from "@throughline/models/ollama";
import { openai } from "@throughline/models/openai";

type Make = (options: object) => unknown;

/** Of each option a value of another type or out of range, and a misspelling of its name. */
const limits = {
  windowTokens: [0, "1000", 1.5],
  assumedWindowTokens: [-1, true],
  maxOutputTokens: [0, "100"],
  thinkingLevel: ["hihg", null, 3],
};
const connection = {
  apiKey: ["", " ", 5],
  baseUrl: ["", 5],
  headers: [5, [], { "x-gate": 5 }],
  fetch: ["fetch", {}],
  provider: ["", null],
  environment: [{}, "process"],
};
const retries = { timeoutMs: [0, -1, "1s", 2 ** 31], maxRetries: [-1, 1.5, 101] };

const factories: readonly (readonly [string, Make, Readonly<Record<string, readonly unknown[]>>])[] = [
  [
    "anthropic",
    (options) => anthropic("m", options),
    { ...limits, ...connection, ...retries, client: [{}, 5], promptCache: ["10m", true] },
  ],
  [
    "openai",
    (options) => openai("m", options),
    {
      ...limits,
      ...connection,
      ...retries,
      client: [{}, 5],
      api: ["responses"],
      outputLimitField: ["maxTokens"],
      reasons: ["yes"],
    },
  ],
  [
    "ollama",
    (options) => ollama("m", options),
    { ...limits, ...connection, timeoutMs: retries.timeoutMs, keepAlive: [30, ""], random: [{}] },
  ],
  ["offline", (options) => offline(options), { windowTokens: limits.windowTokens, wordDelayMs: [-1], clock: [{}] }],
  [
    "createModel",
    (options) => createModel({ provider: "anthropic", modelId: "m", ...options }),
    { ...limits, ...connection, ...retries, modelId: ["", 5], api: ["chat"] },
  ],
];

describe.each(factories)("%s()", (name, make, table) => {
  it.each(Object.entries(table).flatMap(([option, values]) => values.map((value) => [option, value] as const)))(
    "refuses `%s`: %j",
    (option, value) => {
      expect(() => make({ [option]: value })).toThrow(
        expect.objectContaining({
          code: "INPUT_INVALID",
          message: expect.stringContaining(`${name}(): \`${option}\` must be `) as string,
          details: expect.objectContaining({ argument: option }) as object,
        }),
      );
    },
  );

  it.each(Object.keys(table))("names the option that a misspelling of `%s` means", (option) => {
    const misspelt = option.slice(0, -1);
    expect(() => make({ [misspelt]: 1 })).toThrow(`${name}(): \`${misspelt}\` is not an option; did you mean`);
  });

  it("refuses options that are no object", () => {
    if (name !== "createModel")
      expect(() => (make as (options: unknown) => unknown)("key")).toThrow(`${name}(): \`options\` must be an object`);
  });

  it("shows no key", () => {
    if (name !== "offline") expect(() => make({ apiKey: 12_345 })).toThrow(/received a number\.$/);
  });
});

describe("the name of a model", () => {
  const named: readonly (readonly [string, (modelId: never) => unknown])[] = [
    ["anthropic", anthropic],
    ["openai", openai],
    ["ollama", ollama],
  ];
  it.each(named)("has to be the first argument of %s()", (name, make) => {
    for (const wrong of ["", " ", undefined, null, 5, { apiKey: "k" }])
      expect(() => make(wrong as never)).toThrow(`${name}(): \`modelId\` must be a text that is not empty`);
  });
});
