import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import { conformanceCases } from "./conformance-cases.ts";
import type { ConformanceCase } from "./conformance-case.ts";
import type { PayloadCodec } from "@throughline/core";
import { runCase } from "./run-case.ts";
import { setupTable, type ConformanceSetup } from "./store-under-test.ts";
import { createXorCodec } from "./xor-codec.ts";

/** Describes the part of a test runner that the kit uses. Vitest and node:test both provide it. */
interface TestRunner {
  /** Declares a group of tests. */
  describe(name: string, body: () => void): unknown;
  /** Declares a test. */
  it(name: string, body: (context: TestContext) => Promise<void>): unknown;
}

/** Describes the part of a running test that the kit uses. */
interface TestContext {
  /** Marks the running test as skipped; may throw to end it. */
  skip(reason?: string): unknown;
}

/** Configures `describeStoreConformance`. */
export interface DescribeStoreConformanceOptions extends ConformanceSetup {
  /** Names the store in the titles of the tests. */
  readonly name: string;
  /** Declares the tests: `{ describe, it }` of vitest or of node:test. */
  readonly runner: TestRunner;
  /** Lists the cases that the store does not meet yet. The reason appears in the title. An unknown id is an error. */
  readonly skip?: readonly { readonly id: string; readonly reason: string }[] | undefined;
  /** Sets the codec of the second run, to test a codec on the store. @default a codec that changes every byte */
  readonly codec?: PayloadCodec | undefined;
}

const { filledText, list, required } = optionKinds;
const describeTable: OptionTable<DescribeStoreConformanceOptions> = {
  ...setupTable,
  name: required(filledText),
  runner: required({
    expected: "the runner of a test framework, with `describe` and `it`",
    accepts: (value) => (typeof value === "object" || typeof value === "function") && value !== null,
  }),
  skip: list,
  codec: optionKinds.objectWith("encode", "decode"),
};

/**
 * Declares one test per case. With `openWithCodec` every case runs a second time, under a codec.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option; Error for an unknown id in `skip`
 */
export function describeStoreConformance(options: DescribeStoreConformanceOptions): void {
  assertKnownOptions<DescribeStoreConformanceOptions>("describeStoreConformance", options, describeTable);
  const reasons = new Map(options.skip?.map(({ id, reason }) => [id, reason]));
  for (const id of reasons.keys()) {
    if (!conformanceCases.some((each) => each.id === id)) throw new Error(`No conformance case has the id ${id}.`);
  }
  const { openWithCodec, codec = createXorCodec() } = options;
  options.runner.describe(`${options.name} keeps the store contract`, () => {
    for (const each of conformanceCases) declare(each, options, options, reasons.get(each.id));
  });
  if (openWithCodec === undefined) return;
  const underCodec: ConformanceSetup = { ...options, openWithCodec, open: () => openWithCodec(codec) };
  options.runner.describe(`${options.name} keeps the store contract under a codec`, () => {
    const applicable = conformanceCases.filter(({ withoutCodec }) => withoutCodec !== true);
    for (const each of applicable) declare(each, options, underCodec, reasons.get(each.id));
  });
}

function declare(
  each: ConformanceCase,
  options: DescribeStoreConformanceOptions,
  setup: ConformanceSetup,
  reason: string | undefined,
): void {
  const title = `${each.id}: ${each.demand}`;
  options.runner.it(reason === undefined ? title : `${title} (left out: ${reason})`, async (context) => {
    const skipped = reason ?? (await runCase(each, setup));
    if (skipped !== null) context.skip(skipped);
  });
}
