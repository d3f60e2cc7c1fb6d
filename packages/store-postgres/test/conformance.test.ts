import { describeStoreConformance } from "@throughline/store-conformance";
import process from "node:process";
import { afterAll, describe, inject, it } from "vitest";
import { isLongRun } from "../../../tools/test-size.ts";
import { createKitRunner } from "../../../tools/kit-runner.ts";
import { startPooler } from "./start-pooler.ts";
import { endPools, openUnderTest } from "./store-under-test.ts";

const place = inject("postgres");

/** All of the kit behind PgBouncer in transaction mode, where a suite has only a part of it. */
const isPooled = process.env["THROUGHLINE_POOLER"] === "1";
const pooler = isPooled && !("unavailable" in place) ? await startPooler(place) : null;
if (typeof pooler === "string") throw new Error(pooler);

afterAll(async () => {
  await endPools();
  await pooler?.stop();
});

if ("unavailable" in place) {
  describe("store-postgres keeps the store contract", () => {
    it.skip(`needs PostgreSQL: ${place.unavailable}`, () => undefined);
  });
} else {
  const url = pooler?.url ?? place.url;
  // Nobody can listen through a pooler that gives connections away between transactions.
  const options = pooler === null ? {} : { notify: false };
  // The default tier runs each case once on PostgreSQL.
  const runner = createKitRunner((suite) => !suite.includes("plain layout") || suite.endsWith(" under a codec"));
  for (const isDistributed of isLongRun ? [false, true] : [false])
    for (const layout of ["plain", "tenant"] as const)
      describeStoreConformance({
        name: [
          `store-postgres, ${layout} layout`,
          ...(isDistributed ? ["worded for Citus"] : []),
          ...(pooler === null ? [] : ["behind a pooler"]),
        ].join(", "),
        runner,
        open: () => openUnderTest(url, undefined, { ...options, layout, isDistributed }),
        openWithCodec: (codec) => openUnderTest(url, codec, { ...options, layout, isDistributed }),
      });
}
