import process from "node:process";
import { createServer } from "@throughline/server";
import { createSqliteStore } from "@throughline/store-sqlite";

const many = 1_000_000;
const server = await createServer({
  openStore: () => createSqliteStore({ path: process.argv[2] ?? "" }),
  port: 0,
  limits: { requestsPerMinute: many, requestBurst: many, failedTokensPerMinute: many },
});
const rights = { namespace: "*", agents: "*", scopes: ["read", "write", "metrics"], expiresAtMs: null } as const;
const { text } = await server.tokens.create(rights, "tests");
process.send?.({ url: server.url, token: text });
