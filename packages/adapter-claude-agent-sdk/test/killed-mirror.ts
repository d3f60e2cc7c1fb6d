// Appends a batch to a mirror and dies: node killed-mirror.ts STORE.db committed|between|writer FROM COUNT
import process from "node:process";
import { createClaudeSessionStore } from "@throughline/adapter-claude-agent-sdk";
import { createSqliteStore } from "@throughline/store-sqlite";
import { aroundCalls } from "@throughline/test-kit";
import { key, turn } from "./transcript.ts";

const [path = "", how, from = "1", count = "1"] = process.argv.slice(2);
let appends = 0;
const store = aroundCalls(createSqliteStore({ path, create: true }), ({ name, run }) => {
  const given = run();
  if (name !== "append" || how === "writer") return given;
  appends += 1;
  // `committed`: behind the last append, before anybody hears of it. `between`: behind the first of several.
  const isLast = how === "between" || appends === Math.ceil((Number(count) * 4) / 250);
  return isLast ? (given as Promise<unknown>).then(() => process.kill(process.pid, "SIGKILL")) : given;
});
const mirror = createClaudeSessionStore({ store });
const lines = Array.from({ length: Number(count) }, (_, at) => turn(Number(from) + at * 4, `question ${from}`)).flat();
if (how === "writer") for (const one of lines) await mirror.append(key, [one]);
else await mirror.append(key, lines);
await store.close();
