// The session API in a server with Hono. People log in, and each reaches the sessions of their own namespace.
// COOKIE_SECRET=… LOGINS=ada:secret-of-ada,ben:secret-of-ben npm start
import { randomBytes } from "node:crypto";
import process from "node:process";
import { serve } from "@hono/node-server";
import { createSessionApi } from "@throughline/http-api";
import { createSqliteStore } from "@throughline/store-sqlite";
import { Hono } from "hono";
import { getSignedCookie, setSignedCookie } from "hono/cookie";

const secret = process.env["COOKIE_SECRET"] ?? randomBytes(32).toString("hex"); // without one, a restart logs everyone out
const passwords = new Map(
  (process.env["LOGINS"] ?? "").split(",").map((login) => login.split(":", 2) as [string, string]),
);
const store = createSqliteStore({ path: process.env["SESSIONS"] ?? "sessions.db" });
const api = createSessionApi({ store });

const app = new Hono();
app.post("/login", async (context) => {
  const { name, password } = await context.req.parseBody<{ name: string; password: string }>();
  if (password === undefined || passwords.get(name) !== password) return context.text("The password is wrong.", 401);
  await setSignedCookie(context, "user", name, secret, { httpOnly: true, sameSite: "Strict" });
  return context.body(null, 204);
});

app.all("/api/v1/*", async (context) => {
  const user = await getSignedCookie(context, secret, "user");
  if (typeof user !== "string") return api.fetch(context.req.raw, { caller: null }); // 401
  const caller = { id: user, namespace: user, agents: "*", scopes: ["read", "write", "delete"] } as const;
  return api.fetch(context.req.raw, { caller });
});

const server = serve(
  { fetch: app.fetch, port: Number(process.env["PORT"] ?? 3000), hostname: "127.0.0.1" },
  ({ port }) => console.error(`http://127.0.0.1:${port}`),
);
process.once("SIGTERM", async () => {
  await api.close(); // event streams end with `bye`, and requests that run are answered
  server.close();
  await store.close();
});
