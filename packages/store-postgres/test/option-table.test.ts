import { storeOptionTables } from "@throughline/core/internal";
import * as exported from "@throughline/store-postgres";
import { describeOptions } from "@throughline/test-kit/options";
import { postgresStoreTable } from "../src/checked-options.ts";
import { relocateTable } from "../src/relocate-sessions.ts";

// Nothing listens there: what is refused in time asks no server.
const url = "postgres://ada:secret@127.0.0.1:1/db";
const store = exported.createPostgresStore({ url, timeoutMs: 300 });
const ref = { namespace: "", agentId: "main", key: "agent:main:a" };

describeOptions(
  exported,
  [
    {
      name: "createPostgresStore",
      table: postgresStoreTable,
      valid: { url },
      code: "CONFIG_INVALID",
      call: (options) => exported.createPostgresStore(options),
    },
    {
      name: "append",
      of: "createPostgresStore",
      table: storeOptionTables.append,
      valid: { turn: { action: "within", fence: 1 }, expect: { head: null } },
      call: (options) => store.append(ref, [], options),
    },
    {
      name: "relocateSessions",
      table: relocateTable,
      valid: { namespace: "customer" },
      call: (options) => exported.relocateSessions(store, store, options).next(),
    },
  ],
  ["createMovingStore"],
);
