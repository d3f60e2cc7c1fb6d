import { ThroughlineError } from "@throughline/core";
import { assertArgument, assertKnownOptions, optionKinds, type OptionTable } from "../src/option-checks.ts";
import { describe, expect, it } from "vitest";

interface PageOptions {
  readonly system?: string | null;
  readonly limit?: { readonly maxTokens: number; readonly countTokens?: (text: string) => number };
  readonly order?: "up" | "down";
  readonly size?: number;
  readonly ratio?: number;
  readonly apiKey?: string;
  readonly names?: readonly string[];
  readonly signal?: AbortSignal;
  readonly client?: { send(): void };
  readonly either?: string | readonly unknown[];
}

const {
  text,
  orNull,
  oneOf,
  integer,
  number,
  objectOf,
  required,
  callback,
  secret,
  listOf,
  signal,
  objectWith,
  either,
} = optionKinds;

const table: OptionTable<PageOptions> = {
  system: orNull(text),
  limit: objectOf<NonNullable<PageOptions["limit"]>>({
    maxTokens: required(integer({ min: 1 })),
    countTokens: callback,
  }),
  order: oneOf(["up", "down"]),
  size: integer({ min: 1, max: 100 }),
  ratio: number({ min: 0 }),
  apiKey: secret(text),
  names: listOf(text),
  signal,
  client: objectWith("send"),
  either: either(text, optionKinds.list),
};

function problemOf(options: unknown): ThroughlineError {
  try {
    assertKnownOptions<PageOptions>("readPage", options, table);
  } catch (error) {
    if (ThroughlineError.isInstance(error)) return error;
    throw error;
  }
  throw new Error("the options were taken");
}

describe("options of a call", () => {
  it("are taken when they are what the table says", () => {
    for (const options of [
      {},
      { system: null, size: 1, ratio: Infinity, order: "up", apiKey: "sk-1", names: [], either: [] },
      { limit: { maxTokens: 5, countTokens: () => 1 }, signal: new AbortController().signal },
      { client: { send: () => null, more: 1 }, system: undefined },
      { sytem: undefined },
    ])
      expect(() => assertKnownOptions<PageOptions>("readPage", options, table)).not.toThrow();
  });

  it.each([
    [{ sytem: "Be short." }, "`sytem` is not an option; did you mean `system`?"],
    [{ api_key: "sk-secret" }, "`api_key` is not an option; did you mean `apiKey`?"],
    [
      { limit: { maxTokens: 5, countToken: 1 } },
      "`limit.countToken` is not an option; did you mean `limit.countTokens`?",
    ],
    [{ banana: 1 }, "`banana` is not an option; the options are `system`, `limit`, `order`"],
    [{ system: 5 }, "`system` must be a text, or null; received 5."],
    [{ order: "left" }, '`order` must be one of "up", "down"; received "left".'],
    [{ size: 101 }, "`size` must be a whole number from 1 to 100; received 101."],
    [{ size: "ten" }, '`size` must be a whole number from 1 to 100; received "ten".'],
    [{ size: 10n }, "received 10n."],
    [{ ratio: Number.NaN }, "`ratio` must be a number from 0 on; received NaN."],
    [{ limit: {} }, "`limit.maxTokens` must be a whole number from 1 on; received undefined."],
    [{ limit: [] }, "`limit` must be an object; received an array."],
    [{ names: ["a", null] }, "`names[1]` must be a text; received null."],
    [{ signal: {} }, "`signal` must be an AbortSignal; received an object."],
    [{ client: {} }, "`client` must be an object with the function `send`; received an object."],
    [{ either: 5 }, "`either` must be a text, or an array; received 5."],
    [null, "`options` must be an object; received null."],
    ["sk-1", "`options` must be an object; received a text."],
    [[], "`options` must be an object; received an array."],
  ])("are refused: case %#", (options, message) => {
    const problem = problemOf(options);
    expect(problem).toMatchObject({ code: "INPUT_INVALID", outcome: "not-applied", retryable: false });
    expect(problem.message.startsWith("readPage(): `")).toBe(true);
    expect(problem.message).toContain(message);
  });

  it("are named in the details", () => {
    expect(problemOf({ limit: { maxTokens: "5" } }).details).toEqual({
      argument: "limit.maxTokens",
      expected: "a whole number from 1 on",
      received: '"5"',
      nearest: null,
    });
    expect(problemOf({ sytem: 1 }).details).toMatchObject({ argument: "sytem", nearest: "system", received: null });
  });

  it("show nothing that may be a secret, and nothing long", () => {
    const shown = [
      problemOf({ apiKey: { key: "hush" } }),
      problemOf({ size: "sk-hush" }),
      problemOf({ size: "postgres://me:hush@db/x" }),
      problemOf({ system: { password: "hush" } }),
      problemOf({ sytem: "hush" }),
    ];
    for (const { message, details } of shown) expect(message + JSON.stringify(details)).not.toContain("hush");
    expect(problemOf({ order: "x".repeat(100_000) }).message.length).toBeLessThan(200);
    expect(problemOf({ ["x".repeat(100_000)]: 1 }).message.length).toBeLessThan(400);
  });

  it("may be single arguments", () => {
    expect(() => assertArgument("readPage", "limit", 5, integer({ min: 1 }))).not.toThrow();
    expect(() => assertArgument("readPage", "limit", undefined, integer({ min: 1 }))).toThrow(
      "readPage(): `limit` must be a whole number from 1 on; received undefined.",
    );
  });
});
