import { describeStoreConformance } from "@throughline/store-conformance";
import { createMemoryStore } from "@throughline/store-memory";
import { afterAll, describe, inject, it } from "vitest";
import { endPools, openUnderTest } from "./store-under-test.ts";

const place = inject("postgres");

afterAll(endPools);

if ("unavailable" in place) {
  describe("store-postgres keeps the store contract", () => {
    it.skip(`needs PostgreSQL: ${place.unavailable}`, () => undefined);
  });
} else {
  describeStoreConformance({
    name: "store-postgres",
    runner: { describe, it },
    open: () => openUnderTest(place.url),
    openWithCodec: (codec) => openUnderTest(place.url, codec),
    model: () => createMemoryStore(),
  });
}
