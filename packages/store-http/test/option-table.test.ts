import * as exported from "@throughline/store-http";
import { describeOptions } from "@throughline/test-kit/options";
import { httpStoreTable } from "../src/open-http-store.ts";

describeOptions(exported, [
  {
    name: "openHttpStore",
    table: httpStoreTable,
    valid: { url: "http://127.0.0.1:9" },
    code: "CONFIG_INVALID",
    call: (options) => exported.openHttpStore(options),
  },
]);
