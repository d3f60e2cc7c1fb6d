import { updateSessionStore, updateSessionStoreEntry, withSessionStoreLock } from "@throughline/openclaw-compat";

// One act by the documented names, as another process. Arguments: act, path of the index, session key, value.
const [, , act = "", storePath = "", sessionKey = "", value = ""] = process.argv;
const options = { timeoutMs: 60_000, pollIntervalMs: 5 };

if (act === "label") await updateSessionStoreEntry({ storePath, sessionKey, update: () => ({ label: value }) });
if (act === "count")
  for (let time = 0; time < Number(value); time++)
    await withSessionStoreLock(
      storePath,
      () =>
        updateSessionStore(storePath, (store) => {
          const entry = store[sessionKey] ?? { sessionId: "gone" };
          store[sessionKey] = { ...entry, counted: Number(entry["counted"]) + 1 };
        }),
      options,
    );
if (act === "hold")
  await withSessionStoreLock(storePath, async () => {
    process.stdout.write("held\n");
    await new Promise((resolve) => setTimeout(resolve, 60_000));
  });
