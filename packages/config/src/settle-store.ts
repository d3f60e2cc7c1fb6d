import { join } from "node:path";
import type { ConfigNote } from "./config-note.ts";
import { placeText } from "./config-problem.ts";
import type { SettingSet } from "./setting-set.ts";
import { expandHome, storePlace } from "./store-place.ts";

const openclawFolder = [".openclaw", "agents", "main", "sessions"];

export function settleStore(settings: SettingSet, userHome: string, notes: ConfigNote[]): void {
  for (const key of ["session.storePath", "session.inherit.source"]) {
    const expanded = expandHome(settings.value(key), userHome);
    if (expanded !== null) settings.fill(key, expanded);
  }
  settleSource(settings, userHome);
  const named = ["session.storePath", "session.store"].find((key) => settings.isSet(key)) ?? null;
  if (settings.isSet("store")) {
    if (named !== null) refuseTwoStores(settings, named);
    return;
  }
  checkStore(settings);
  const source = settings.value("session.inherit.source");
  const { url, agentId, isElsewhere } = storePlace({
    store: String(settings.value("session.store")),
    storePath: settings.value("session.storePath") as string | null,
    home: String(settings.value("home")),
    inheritsFrom: settings.value("session.inherit.enabled") === false ? null : (source as string | null),
  });
  settings.fill("store", url, named);
  const place = settings.place("session.storePath");
  const at = { path: place?.path ?? null, line: place?.line ?? null };
  if (isElsewhere) {
    const message = `Sessions are inherited from ${String(source)}, where another program writes; they are kept in ${url}.`;
    notes.push({ kind: "repaired", key: "session.storePath", message, used: url, ...at });
  }
  if (agentId !== null && !settings.isSet("agent")) {
    settings.fill("agent", agentId, "session.storePath");
  }
}

/** Without a setting, sessions are inherited from the named folder of sessions, else from OpenClaw's folder. */
function settleSource(settings: SettingSet, userHome: string): void {
  if (settings.isSet("session.inherit.source")) return;
  const storePath = settings.value("session.storePath");
  const isFolder = settings.value("session.store") === "jsonl" && storePath !== null;
  const isWanted = settings.value("session.inherit.enabled") === true;
  if (isFolder && isWanted) settings.fill("session.inherit.source", storePath, "session.storePath");
  else settings.fill("session.inherit.source", join(userHome, ...openclawFolder));
}

/** A file that names the store twice is refused, because one of the two names would be ignored. */
function refuseTwoStores(settings: SettingSet, named: string): void {
  if (settings.get("store").source !== "file" || settings.get(named).source !== "file") return;
  const other = settings.place(named);
  const where = other === null ? "" : ` (${placeText(other)})`;
  const message = `store and ${named}${where} both say where sessions are kept; keep one of them.`;
  throw settings.refusal("store", message, `nothing beside ${named}`);
}

function checkStore(settings: SettingSet): void {
  const store = settings.value("session.store");
  const path = settings.value("session.storePath");
  const isUrl = typeof path === "string" && /^postgres(ql)?:\/\//i.test(path);
  const refuse = (key: string, said: string, allowed: string): never => {
    throw settings.refusal(key, `${said}; it must be ${allowed}.`, allowed);
  };
  if (store === "postgres" && !isUrl) {
    const said = path === null ? "session.storePath is missing" : "session.storePath is no URL of a server";
    refuse(path === null ? "session.store" : "session.storePath", said, "postgres://… where session.store is postgres");
  }
  if (store === "memory" && path !== null) {
    refuse("session.storePath", "session.storePath names a place", "left out where session.store is memory");
  }
  if (store !== "postgres" && isUrl) {
    refuse(
      "session.storePath",
      "session.storePath is the URL of a server",
      `a path where session.store is ${String(store)}`,
    );
  }
}
