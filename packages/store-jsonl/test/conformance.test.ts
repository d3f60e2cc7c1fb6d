import type { PayloadCodec } from "@throughline/core";
import { describeStoreConformance } from "@throughline/store-conformance";
import { describe, it } from "vitest";
import { kitRunner } from "../../../tools/kit-runner.ts";
import { openUnderTest } from "./store-under-test.ts";

describeStoreConformance({
  name: "store-jsonl",
  runner: kitRunner,
  open: () => openUnderTest(),
  openWithCodec: (codec) => openUnderTest({ codec }),
});

// What the index answers otherwise: the cases of lists, and those where nothing fits the codec.
const isAboutLists = /^(?:list|codec)\//;

describeStoreConformance({
  name: "store-jsonl without an index",
  runner: { describe, it: (name, body) => (isAboutLists.test(name) ? it(name, body) : undefined) },
  open: () => openUnderTest({ index: false }),
  openWithCodec: (codec: PayloadCodec) => openUnderTest({ index: false, codec }),
});
