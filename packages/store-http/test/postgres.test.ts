import { describeStoreConformance } from "@throughline/store-conformance";
import { createMemoryStore } from "@throughline/store-memory";
import { afterAll, describe, inject, it } from "vitest";
import { createPostgresPlaces } from "./postgres-places.ts";
import { endServers, openUnderTest } from "./store-under-test.ts";

const server = inject("postgres");
const name = "store-http over a server on PostgreSQL";

if ("unavailable" in server) {
  describe(name, () => {
    it.skip(`needs PostgreSQL: ${server.unavailable}`, () => undefined);
  });
} else {
  const places = createPostgresPlaces(server.url);
  afterAll(async () => {
    await endServers();
    await places.end();
  });
  describeStoreConformance({
    name,
    runner: { describe, it },
    open: () => openUnderTest(places.make),
    model: () => createMemoryStore(),
  });
}
