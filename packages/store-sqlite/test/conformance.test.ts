import { describeStoreConformance } from "@throughline/store-conformance";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, it } from "vitest";
import { openUnderTest } from "./store-under-test.ts";

describeStoreConformance({
  name: "store-sqlite",
  runner: { describe, it },
  open: () => openUnderTest(),
  openWithCodec: (codec) => openUnderTest(codec),
  model: () => createMemoryStore(),
});
