// A worker: takes messages from a queue in PostgreSQL and answers each in its user's session. Start as many as you like, on any
// machine. DATABASE_URL=… ANTHROPIC_API_KEY=… npm start
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { hasErrorCode } from "@throughline/core";
import { anthropic } from "@throughline/models/anthropic";
import { createSessions } from "@throughline/session";
import { createPostgresStore } from "@throughline/store-postgres";
import { createQueue, type Job } from "./queue.ts";

const url = process.env["DATABASE_URL"] ?? "postgres://localhost/agents";
const name = process.argv[2] ?? `worker ${process.pid}`;
const leaseMs = Number(process.env["LEASE_MS"] ?? 30_000);
const queue = await createQueue(url, leaseMs);
const store = createPostgresStore({ url });
const sessions = createSessions({ store, model: anthropic(process.env["MODEL"] ?? "claude-sonnet-5"), leaseMs });
const stopped = new AbortController();
process.once("SIGTERM", () => stopped.abort());

/** Answers a message. Whoever answered it before, or began to and was killed: the same message has one answer. */
async function answer({ id, user, text }: Job): Promise<string> {
  await using session = await sessions.open(`agent:main:queue:direct:${user}`);
  return (await session.runTurn(text, { idempotencyKey: id })).text;
}

while (!stopped.signal.aborted) {
  const job = await queue.take();
  if (job === null) {
    await sleep(100, undefined, { signal: stopped.signal }).catch(() => undefined); // woken by SIGTERM
    continue;
  }
  const renewal = setInterval(() => void queue.renew(job).catch(console.error), leaseMs / 3);
  try {
    const text = await answer(job);
    await queue.complete(job);
    process.stdout.write(`${JSON.stringify({ worker: name, id: job.id, text })}\n`);
  } catch (error) {
    // The job is due again when its lease has run out; SESSION_BUSY means that a killed worker's turn still has its lease.
    if (!hasErrorCode(error, "SESSION_BUSY")) console.error(error);
  } finally {
    clearInterval(renewal);
  }
}
await sessions.close();
await store.close();
await queue.close();
