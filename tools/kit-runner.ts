import { describe, it } from "vitest";
import { isLongRun } from "./test-size.ts";

/** What a codec can change: what is coded, what is read without decoding, and what is refused because it is coded. */
const dependsOnCodec = /^(?:codec|copies|fork|heads|partials|redact|search|sources|text-copies|window)\//;

/** The runner of a store's conformance kit. In the short tier, under a codec only what depends on one is repeated. */
export const kitRunner: {
  describe(name: string, body: () => void): void;
  it(name: string, body: (context: { skip(reason: string): void }) => Promise<void>): void;
} = {
  describe: (name, body) =>
    describe(name, () => {
      isUnderCodec = name.endsWith(" under a codec");
      body();
    }),
  it: (name, body) => {
    if (isLongRun || !isUnderCodec || dependsOnCodec.test(name)) it(name, body);
  },
};

let isUnderCodec = false;
