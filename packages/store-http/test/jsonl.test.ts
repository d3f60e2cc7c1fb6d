import { describeStoreConformance } from "@throughline/store-conformance";
import { afterAll, describe, it } from "vitest";
import { isLongRun } from "../../../tools/test-size.ts";
import { jsonlPlace } from "./served-stores.ts";
import { endServers, openUnderTest } from "./store-under-test.ts";

afterAll(endServers);

const name = "store-http over a server on JSON Lines";

if (isLongRun)
  describeStoreConformance({
    name,
    runner: { describe, it },
    open: () => openUnderTest(jsonlPlace),
  });
else describe(name, () => it.skip("is part of npm run test:long", () => undefined));
