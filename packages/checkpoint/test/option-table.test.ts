import * as exported from "@throughline/checkpoint";
import { sessionRef } from "@throughline/core";
import { modelTable } from "@throughline/core/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { describeOptions } from "@throughline/test-kit/options";
import { checkpointerTable, turnSizeTable } from "../src/checkpointer-options.ts";
import { listTable } from "../src/list-checkpoints.ts";

const store = createMemoryStore();
const ref = sessionRef({ key: "agent:main:main" });

describeOptions(
  exported,
  [
    {
      name: "createCheckpointer",
      table: checkpointerTable,
      valid: { store, owner: "worker-1" },
      call: (options) => exported.createCheckpointer(options),
    },
    {
      name: "afterTurn",
      of: "createCheckpointer",
      table: turnSizeTable,
      valid: { tokens: 10, windowTokens: null },
      call: (size) =>
        exported.createCheckpointer({ store, owner: "worker-1" }).afterTurn(ref, { sessionId: "one" }, size),
    },
    {
      name: "chatCheckpointWriter",
      table: modelTable,
      valid: { chat: { provider: "none", chat: () => Promise.reject(new Error("never asked")) }, modelId: "none" },
      call: (model) => exported.chatCheckpointWriter(model),
    },
    { name: "listCheckpoints", table: listTable, call: (options) => exported.listCheckpoints(store, ref, options) },
  ],
  ["summarizerCheckpointWriter"],
);
