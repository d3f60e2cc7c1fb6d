import { describeStoreConformance } from "@throughline/store-conformance";
import process from "node:process";
import { afterAll, describe, inject, it } from "vitest";
import { kitRunner } from "../../../tools/kit-runner.ts";
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
  describeStoreConformance({
    name: `store-postgres${pooler === null ? "" : " behind a pooler"}`,
    runner: kitRunner,
    open: () => openUnderTest(url, undefined, options),
    openWithCodec: (codec) => openUnderTest(url, codec, options),
  });
}
