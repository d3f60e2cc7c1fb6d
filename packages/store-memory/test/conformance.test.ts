import { describeStoreConformance } from "@throughline/store-conformance";
import { describe, it } from "vitest";
import { openUnderTest } from "./store-under-test.ts";

describeStoreConformance({
  name: "store-memory",
  runner: { describe, it },
  open: () => openUnderTest(),
  openWithCodec: (codec) => openUnderTest(codec),
});
