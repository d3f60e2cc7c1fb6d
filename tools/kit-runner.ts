import { describe, it } from "vitest";
import { isLongRun } from "./test-size.ts";

/** What a codec can change: what is coded, what is read without decoding, and what is refused because it is coded. */
const dependsOnCodec = /^(?:codec|copies|fork|heads|partials|redact|search|sources|text-copies|window)\//;

/** Cases of many steps, which take seconds on any store that writes to a disk. */
const hasManySteps =
  /^(?:idempotency\/(?:expired|remembered|without-records)|limits\/largest-record|model\/random-histories):/;

/** What declares the tests of a store's conformance kit. */
export interface KitRunner {
  describe(name: string, body: () => void): void;
  it(name: string, body: (context: { skip(reason: string): void }) => Promise<void>): void;
}

/**
 * A runner of a store's conformance kit. Under a codec only what depends on one is repeated, but at full size everything.
 *
 * @param isSlow whether only the whole tier runs a test, by the name of its suite; a case of many steps is always slow,
 * except in memory
 */
export function createKitRunner(isSlow: (suite: string) => boolean = () => false): KitRunner {
  let suite = "";
  return {
    describe: (name, body) =>
      describe(name, () => {
        suite = name;
        body();
      }),
    it: (name, body) => {
      if (!isLongRun && suite.endsWith(" under a codec") && !dependsOnCodec.test(name)) return;
      const isOfMemory = suite.startsWith("store-memory");
      const tags = isSlow(suite) || (hasManySteps.test(name) && !isOfMemory) ? ["slow"] : [];
      it(name, { tags }, body);
    },
  };
}

/** The runner for a store of which every suite runs in the default tier. */
export const kitRunner: KitRunner = createKitRunner();
