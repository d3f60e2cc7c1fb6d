// The session API in a server with Express. Customers show an API key, and each reaches the sessions of their own namespace.
// API_KEYS=key-of-acme:acme,key-of-globex:globex npm start
import process from "node:process";
import { createSessionApi, type ApiCaller } from "@throughline/http-api";
import { createSqliteStore } from "@throughline/store-sqlite";
import express, { type Request } from "express";

const customers = new Map(
  (process.env["API_KEYS"] ?? "").split(",").map((key) => key.split(":", 2) as [string, string]),
);
const store = createSqliteStore({ path: process.env["SESSIONS"] ?? "sessions.db" });
const api = createSessionApi({ store });

/** Returns null without a known key, which the API refuses with status 401. */
function callerOf(request: Request): ApiCaller | null {
  const customer = customers.get(request.get("x-api-key") ?? "");
  if (customer === undefined) return null;
  return { id: customer, namespace: customer, agents: "*", scopes: ["read", "write", "delete"] };
}

const app = express();
// It comes before express.json(), because the API reads bodies itself.
app.all(/^\/api\/v1\//, (request, response) => api.nodeHandler(request, response, { caller: callerOf(request) }));
app.use(express.json());
app.get("/", (_request, response) => void response.send("Sessions are below /api/v1."));

const server = app.listen(Number(process.env["PORT"] ?? 3000), "127.0.0.1", () => {
  const address = server.address();
  console.error(`http://127.0.0.1:${typeof address === "object" ? address?.port : address}`);
});
process.once("SIGTERM", async () => {
  await api.close(); // event streams end with `bye`, and requests that run are answered
  server.close();
  await store.close();
});
