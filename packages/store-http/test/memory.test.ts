import { describeStoreConformance } from "@throughline/store-conformance";
import { afterAll } from "vitest";
import { kitRunner } from "../../../tools/kit-runner.ts";
import { memoryPlace } from "./served-stores.ts";
import { endServers, openUnderTest } from "./store-under-test.ts";

afterAll(endServers);

describeStoreConformance({
  name: "store-http over a server on memory",
  runner: kitRunner,
  open: () => openUnderTest(memoryPlace),
});
