import { systemClock, systemRandom } from "@throughline/core/internal";
import { createOpenclawSessions } from "@throughline/openclaw-compat";
import { openStore, storePath, type StoreKind } from "./compat-fixture.ts";

// Adds to a field of an entry, so many times, as one of several processes. Arguments: kind of store, folder, key, times.
const [, , kind = "", folder = "", key = "", times = ""] = process.argv;
await using store = openStore(kind as StoreKind, folder);
const sessions = createOpenclawSessions({
  store,
  stateDir: "/state",
  homeDir: "/",
  clock: systemClock,
  random: systemRandom,
  owner: `process ${process.pid}`,
});
for (let index = 0; index < Number(times); index++) {
  const lock = { timeoutMs: 60_000, pollIntervalMs: 5 };
  await sessions.updateSessionStore(
    storePath,
    (entries) => {
      const entry = entries[key];
      if (entry === undefined) throw new Error("the entry is gone");
      entries[key] = { ...entry, counted: Number(entry["counted"] ?? 0) + 1, [`by${process.pid}`]: index + 1 };
    },
    lock,
  );
}
