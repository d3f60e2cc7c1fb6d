import { describeStoreConformance } from "@throughline/store-conformance";
import { afterAll, describe, inject, it } from "vitest";
import { isLongRun } from "../../../tools/test-size.ts";
import { createPostgresPlaces } from "./postgres-places.ts";
import { endServers, openUnderTest } from "./store-under-test.ts";

const name = "store-http over a server on PostgreSQL";
const server = isLongRun ? inject("postgres") : { unavailable: "is part of npm run test:long" };

if ("unavailable" in server) {
  describe(name, () => it.skip(server.unavailable, () => undefined));
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
  });
}
