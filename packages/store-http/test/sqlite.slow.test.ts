import { describeStoreConformance } from "@throughline/store-conformance";
import { afterAll, describe, it } from "vitest";
import { isLongRun } from "../../../tools/test-size.ts";
import { sqlitePlace } from "./served-stores.ts";
import { endServers, openUnderTest } from "./store-under-test.ts";

afterAll(endServers);

/**
 * The kit passes over HTTP on memory and in SQLite without HTTP. What the two do together is what goes through both:
 * durability, starts of a server on what another one left, errors, bytes, turns, watches and vectors.
 */
const isOfBoth = /^(?:manifest|lifecycle|durability|errors|concurrency|gaps|sides|turns|watch|codec|events|vectors)\//;

describeStoreConformance({
  name: "store-http over a server on SQLite",
  runner: { describe, it: (title, body) => (isLongRun || isOfBoth.test(title) ? it(title, body) : undefined) },
  open: () => openUnderTest(sqlitePlace),
});
