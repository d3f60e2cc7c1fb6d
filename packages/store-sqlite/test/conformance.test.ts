import { describeStoreConformance } from "@throughline/store-conformance";
import { kitRunner } from "../../../tools/kit-runner.ts";
import { openUnderTest } from "./store-under-test.ts";

describeStoreConformance({
  name: "store-sqlite",
  runner: kitRunner,
  open: () => openUnderTest(),
  openWithCodec: (codec) => openUnderTest(codec),
});
