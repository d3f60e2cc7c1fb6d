// A Worker: it has no disk, so its sessions are on a Throughline server (`throughline serve`), and any region may answer any user.
// esbuild src/worker.ts --bundle --format=esm --platform=neutral --main-fields=module,main --external:node:* --outfile=worker.js
import { hasErrorCode } from "@throughline/core";
import { anthropic } from "@throughline/models/anthropic";
import { createSessions } from "@throughline/session";
import { openHttpStore } from "@throughline/store-http";

/** The bindings. Keep the secrets as secrets: neither leaves the Worker. */
export interface Env {
  readonly THROUGHLINE_URL: string;
  /** A token of the server with the scopes `read` and `write`. */
  readonly THROUGHLINE_TOKEN: string;
  readonly ANTHROPIC_API_KEY: string;
  readonly ANTHROPIC_BASE_URL?: string;
  /** What callers present: `authorization: Bearer …`. */
  readonly CALLER_TOKEN: string;
}

/** Equal texts, in a time that does not tell where they differ. */
async function isEqual(one: string, other: string): Promise<boolean> {
  const hash = async (text: string): Promise<Uint8Array> =>
    new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  const [a, b] = await Promise.all([hash(one), hash(other)]);
  return a.every((byte, place) => byte === b[place]);
}

// oxlint-disable-next-line import/no-default-export -- a Worker is its default export
export default {
  /** `POST /turns/<session>` with the user's words as its body; answers with server-sent events. */
  async fetch(request: Request, env: Env, context: { waitUntil(work: Promise<unknown>): void }): Promise<Response> {
    const name = /^\/turns\/([a-z0-9-]{1,64})$/.exec(new URL(request.url).pathname)?.[1];
    if (request.method !== "POST" || name === undefined)
      return new Response("POST /turns/<session>\n", { status: 404 });
    if (!(await isEqual(request.headers.get("authorization") ?? "", `Bearer ${env.CALLER_TOKEN}`)))
      return new Response("A token is needed.\n", { status: 401 });
    try {
      const store = await openHttpStore({ url: env.THROUGHLINE_URL, token: env.THROUGHLINE_TOKEN });
      const baseUrl = env.ANTHROPIC_BASE_URL === undefined ? {} : { baseUrl: env.ANTHROPIC_BASE_URL };
      const model = anthropic("claude-sonnet-5", { apiKey: env.ANTHROPIC_API_KEY, ...baseUrl });
      const sessions = createSessions({ store, model });
      const session = await sessions.open(name);
      if (session.interruptedTurn !== null) await session.resume(); // an isolate that was ended left it
      const idempotencyKey = request.headers.get("idempotency-key");
      const stream = session.streamTurn(await request.text(), idempotencyKey === null ? {} : { idempotencyKey });
      const ended = stream.result.then(
        () => undefined,
        (error: unknown) => console.error(error),
      );
      // The answer is stored, although the caller leaves.
      context.waitUntil(ended.then(() => sessions.close()).then(() => store.close()));
      return stream.toResponse({ onDisconnect: "finish" });
    } catch (error) {
      console.error(error);
      const isBusy = hasErrorCode(error, "SESSION_BUSY");
      return new Response("The turn could not start.\n", { status: isBusy ? 409 : 502 });
    }
  },
};
