import { describeStoreConformance } from "@throughline/store-conformance";
import { afterAll, describe, it } from "vitest";
import { memoryPlace } from "./served-stores.ts";
import { endServers, openUnderTest } from "./store-under-test.ts";

afterAll(endServers);

describeStoreConformance({
  name: "store-http over a server on memory",
  runner: { describe, it },
  open: () => openUnderTest(memoryPlace),
});
