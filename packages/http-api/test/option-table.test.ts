import * as exported from "@throughline/http-api";
import { createMemoryStore } from "@throughline/store-memory";
import { describeOptions } from "@throughline/test-kit/options";
import { sessionApiTable } from "../src/create-session-api.ts";

describeOptions(exported, [
  {
    name: "createSessionApi",
    table: sessionApiTable,
    valid: { store: createMemoryStore() },
    code: "CONFIG_INVALID",
    call: async (options) => exported.createSessionApi(options).close(),
  },
]);
