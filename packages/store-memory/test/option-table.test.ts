import * as exported from "@throughline/store-memory";
import { describeOptions } from "@throughline/test-kit/options";
import { memoryStoreTable } from "../src/memory-store.ts";

describeOptions(exported, [
  {
    name: "createMemoryStore",
    table: memoryStoreTable,
    code: "CONFIG_INVALID",
    call: (options) => exported.createMemoryStore(options),
  },
]);
