// A web chat: one session per user, answers as they are written, and a conversation that is there again after a reload.
// ANTHROPIC_API_KEY=… COOKIE_SECRET=… npm start
import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import process from "node:process";
import { serve } from "@hono/node-server";
import { anthropic } from "@throughline/models/anthropic";
import { createSessions, type Session } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";
import { Hono, type Context } from "hono";
import { bodyLimit } from "hono/body-limit";
import { getSignedCookie, setSignedCookie } from "hono/cookie";
import { HTTPException } from "hono/http-exception";

const secret = process.env["COOKIE_SECRET"] ?? randomBytes(32).toString("hex"); // without one, users are new after a restart
const store = createSqliteStore({ path: process.env["SESSIONS"] ?? "sessions.db" });
const sessions = createSessions({ store, model: anthropic(process.env["MODEL"] ?? "claude-sonnet-4-5") });
const page = readFileSync(new URL("page.html", import.meta.url), "utf8");

/** The session of the user whose signed cookie came: nobody can name that of another. */
async function sessionOf(context: Context): Promise<Session> {
  let user = await getSignedCookie(context, secret, "user");
  if (typeof user !== "string") {
    user = randomUUID();
    await setSignedCookie(context, "user", user, secret, { httpOnly: true, sameSite: "Strict", maxAge: 34_560_000 });
  }
  return sessions.open(`agent:main:web:direct:${user}`);
}

function readMessage(body: string): { readonly text: string; readonly id: string } | null {
  try {
    const { text, id } = JSON.parse(body) as { readonly text?: unknown; readonly id?: unknown };
    return typeof text === "string" && text.trim() !== "" && typeof id === "string" && id !== "" ? { text, id } : null;
  } catch {
    return null; // no JSON, or null
  }
}

const app = new Hono();
app.get("/", (context) => context.html(page));

app.get("/messages", async (context) => {
  await using session = await sessionOf(context);
  const { messages } = await session.transcript();
  const texts = messages.map(({ role, content }) => ({
    role,
    text: content.map((block) => (block.type === "text" ? block.text : "")).join(""),
  }));
  return context.json(texts.filter(({ role, text }) => (role === "user" || role === "assistant") && text !== ""));
});

app.post("/turns", bodyLimit({ maxSize: 65_536 }), async (context) => {
  const message = readMessage(await context.req.text());
  if (message === null) return context.json({ error: "text and id, the id of the message, are needed" }, 400);
  const session = await sessionOf(context);
  if (session.interruptedTurn !== null) await session.resume(); // a killed server left it
  const stream = session.streamTurn(message.text, { idempotencyKey: message.id }); // sent again, it is answered once
  void stream.result.catch((error: unknown) => console.error(error)).finally(() => session.close());
  const response = stream.toResponse({
    onDisconnect: "finish", // the answer is stored, although the reader left
    data: (event) => {
      if (event.name === "text.delta") return JSON.stringify(event.text);
      return event.name === "turn.result" ? { outcome: event.turn.outcome } : undefined; // the rest stays here
    },
  });
  return context.newResponse(response.body, response); // with the cookie
});

app.onError((error, context) => {
  if (error instanceof HTTPException) return error.getResponse(); // such as a body that is too large
  console.error(error);
  return context.json({ error: "The message could not be answered." }, 500);
});

const server = serve(
  { fetch: app.fetch, port: Number(process.env["PORT"] ?? 3000), hostname: "127.0.0.1" },
  ({ port }) => console.error(`http://127.0.0.1:${port}`),
);
process.once("SIGTERM", () => server.close(() => void sessions.close().then(() => store.close())));
