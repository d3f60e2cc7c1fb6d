// A web chat: one session per user, answers as they are written, and a conversation that is there again after a reload,
// with the answer that is being written. A user edits a question, asks for another answer, switches between the
// versions, sends files, and allows or refuses what a tool would do.
// ANTHROPIC_API_KEY=… COOKIE_SECRET=… npm start
import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import process from "node:process";
import { serve } from "@hono/node-server";
import { anthropic } from "@throughline/models/anthropic";
import { createSessions, type AttachedTurn, type Session, type TurnStream } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";
import { Hono, type Context } from "hono";
import { bodyLimit } from "hono/body-limit";
import { getSignedCookie, setSignedCookie } from "hono/cookie";
import { HTTPException } from "hono/http-exception";

const secret = process.env["COOKIE_SECRET"] ?? randomBytes(32).toString("hex"); // without one, users are new after a restart
const store = createSqliteStore({ path: process.env["SESSIONS"] ?? "sessions.db" });
const inputSchema = { type: "object", properties: { order: { type: "string" } }, required: ["order"] };
const sessions = createSessions({
  store,
  model: anthropic(process.env["MODEL"] ?? "claude-sonnet-5"),
  tools: [
    {
      definition: { name: "refund", description: "Pays an order back.", inputSchema },
      run: ({ order }) => `Order ${String(order)} is paid back.`,
    },
  ],
  approveTool: () => ({ wait: {} }), // the user decides on the page, now or after a restart
});
type Shown = Awaited<ReturnType<Session["transcript"]>>["messages"][number]["content"][number];
const page = readFileSync(new URL("page.html", import.meta.url), "utf8");

/** The session key of the user whose signed cookie came: nobody can name that of another. */
async function keyOf(context: Context): Promise<string> {
  let user = await getSignedCookie(context, secret, "user");
  if (typeof user !== "string") {
    user = randomUUID();
    await setSignedCookie(context, "user", user, secret, { httpOnly: true, sameSite: "Strict", maxAge: 34_560_000 });
  }
  return `agent:main:web:direct:${user}`;
}

const sessionOf = async (context: Context): Promise<Session> => sessions.open(await keyOf(context));

/** Reads texts that the page sent; null when one is missing or empty. */
async function readTexts<Name extends string>(
  context: Context,
  ...names: readonly Name[]
): Promise<Readonly<Record<Name, string>> | null> {
  try {
    const body = JSON.parse(await context.req.text()) as Readonly<Record<string, unknown>>;
    const isText = (name: Name): boolean => typeof body[name] === "string" && body[name].trim() !== "";
    return names.every(isText) ? (body as Readonly<Record<Name, string>>) : null;
  } catch {
    return null; // no JSON, or null
  }
}

/** Answers with the pieces of the answer, and closes the session after the turn. */
async function answer(context: Context, start: (session: Session) => TurnStream): Promise<Response> {
  const session = await sessionOf(context);
  if (session.interruptedTurn !== null && session.pendingApprovals.length === 0)
    await session.resume({ continueReply: true }); // a killed server left it
  const stream = start(session);
  void stream.result.catch((error: unknown) => console.error(error)).finally(() => session.close());
  return respond(context, stream);
}

function respond(context: Context, stream: TurnStream | AttachedTurn): Response {
  const response = stream.toResponse({
    onDisconnect: "finish", // the answer is stored, although the reader left
    data: (event) => {
      if (event.name === "text.delta" || event.name === "text.snapshot") return JSON.stringify(event.text);
      if (event.name === "turn.interrupted") return {};
      return event.name === "turn.result" ? { outcome: event.turn.outcome } : undefined; // the rest stays here
    },
  });
  return context.newResponse(response.body, response); // with the cookie
}

const app = new Hono();
app.get("/", (context) => context.html(page));

/** Keeps a file as it arrives. A question names it; its bytes are sent with every request of the session. */
app.post("/files", async (context) => {
  const mediaType = context.req.header("content-type") ?? "application/octet-stream";
  const name = context.req.query("name") || "file";
  const { id } = await sessions.files.put(context.req.raw.body ?? new Blob([]), {
    mediaType,
    name,
    maxBytes: 20_000_000,
  });
  return context.json({ fileId: id, mediaType, name });
});

app.use(bodyLimit({ maxSize: 65_536 }));

function textOf(block: Shown): string {
  if (block.type === "text") return block.text;
  return block.type === "file" ? ` [${block.name ?? "file"}]` : "";
}

app.get("/messages", async (context) => {
  await using session = await sessionOf(context);
  const { messages } = await session.transcript({ branches: true });
  const texts = messages.map(({ recordId, role, content, branches = null }) => ({
    recordId,
    role,
    text: content.map(textOf).join(""),
    branches, // { position: 2, count: 3 } of a message with other versions
  }));
  const isContinued = (at: number): boolean => "isContinued" in (messages[at] ?? {}); // nobody typed what follows it
  const shown = texts.filter(({ role, text }, at) => {
    return (role === "assistant" || (role === "user" && !isContinued(at - 1))) && text !== "";
  });
  const { pendingApprovals, partialReply } = session; // what a killed server was writing
  return context.json({ messages: shown, approvals: pendingApprovals, cutOff: partialReply?.text ?? "" });
});

app.get("/turn", async (context) => {
  const attached = await sessions.attach(await keyOf(context));
  return attached === null ? context.body(null, 204) : respond(context, attached);
});

app.post("/turns", async (context) => {
  const message = await readTexts(context, "text", "id");
  if (message === null) return context.json({ error: "text and id, the id of the message, are needed" }, 400);
  const { text, id, fileId, mediaType, name } = message as typeof message &
    Readonly<Record<string, string | undefined>>;
  const file = { type: "file", fileId, mediaType, name };
  const content = fileId === undefined ? text : [{ type: "text", text }, file];
  return answer(context, (session) => session.streamTurn(content, { idempotencyKey: id })); // sent again, it is answered once
});

app.post("/edits", async (context) => {
  const edit = await readTexts(context, "text", "recordId");
  if (edit === null) return context.json({ error: "text and recordId are needed" }, 400);
  return answer(context, (session) => session.streamEdit(edit.recordId, edit.text));
});

app.post("/answers", (context) => answer(context, (session) => session.streamRegenerate()));

app.post("/approvals", async (context) => {
  const decision = await readTexts(context, "callId", "answer");
  if (decision === null) return context.json({ error: "callId and answer, allow or refuse, are needed" }, 400);
  const { callId, answer: given } = decision;
  const approvals = { [callId]: given === "allow" ? true : { refuse: "The user did not allow it." } } as const;
  return answer(context, (session) => session.streamResume({ approvals }));
});

app.post("/switches", async (context) => {
  const wanted = await readTexts(context, "recordId", "to");
  if (wanted === null) return context.json({ error: "recordId and to, next or previous, are needed" }, 400);
  await using session = await sessionOf(context);
  const branches = await session.branches(wanted.recordId);
  const position = branches.findIndex(({ recordId }) => recordId === wanted.recordId);
  const branch = branches[wanted.to === "next" ? position + 1 : position - 1];
  if (branch !== undefined) await session.switchTo(branch.recordId);
  return context.body(null, 204);
});

const statuses: ReadonlyMap<unknown, 400 | 404 | 409 | 413> = new Map([
  ["INPUT_INVALID", 400],
  ["FILE_NOT_FOUND", 404],
  ["FILE_TOO_LARGE", 413],
  ["RECORD_NOT_FOUND", 404],
  ["SESSION_BUSY", 409],
]);
app.onError((error, context) => {
  if (error instanceof HTTPException) return error.getResponse(); // such as a body that is too large
  const status = statuses.get((error as { readonly code?: unknown }).code);
  if (status !== undefined) return context.json({ error: error.message }, status);
  console.error(error);
  return context.json({ error: "The message could not be answered." }, 500);
});

const server = serve(
  { fetch: app.fetch, port: Number(process.env["PORT"] ?? 3000), hostname: "127.0.0.1" },
  ({ port }) => console.error(`http://127.0.0.1:${port}`),
);
process.once("SIGTERM", () => server.close(() => void sessions.close().then(() => store.close())));
