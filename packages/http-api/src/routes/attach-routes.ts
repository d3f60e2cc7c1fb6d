import { isSilentReply } from "@throughline/compaction/internal";
import type { OpenTurn } from "@throughline/core";
import { sessionNotFound } from "@throughline/core/internal";
import { followTurn, processOwners } from "@throughline/session/internal";
import { z } from "zod";
import { TextStream } from "../events/text-stream.ts";
import { eventHeaders } from "../events/event-text.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { sessionQuery } from "../schemas/session.ts";

const description = `For a page that is opened or reloaded while a program answers. Text of other programs is at most 2 s late. Closing the stream cancels nothing. The data of an event is JSON.

| event | data |
| --- | --- |
| \`text.snapshot\` | first: \`{turnId, text}\`, the text so far. It replaces all text of earlier events |
| \`text.delta\` | \`{turnId, text}\`: the next piece |
| \`turn.closed\` | \`{turnId, outcome}\`; the stream ends |
| \`turn.interrupted\` | \`{turnId}\`: the program of the turn is gone; the stream ends |
| \`ping\`, \`bye\`, \`gone\` | as in \`followSession\` |

The messages and records of the turn are those of the session.`;

export const attachRoutes: readonly RouteDefinition[] = [
  route({
    id: "followTurn",
    method: "GET",
    path: "/sessions/{session}/turn/events",
    summary: "Follows the reply that is being written as a stream of server-sent events.",
    description,
    scope: "read",
    query: z.strictObject(sessionQuery),
    answers: {
      200: { description: "The events.", type: "text/event-stream" },
      204: { description: "No turn runs in the session." },
    },
    errors: ["SESSION_NOT_FOUND", "RATE_LIMITED"],
    handle: async ({ context, ref, view, response, id, signal }) => {
      const at = ref();
      const store = view.store(at.agentId);
      const state = await store.load(at, { signal });
      if (state === null) throw sessionNotFound(at);
      const { clock, streams, live } = context;
      const owners = processOwners();
      const isDead = ({ leaseUntilMs, owner }: OpenTurn): boolean =>
        leaseUntilMs <= clock.nowMs() || owners.stateOf(owner) === "gone";
      const { turn } = state.head;
      if (turn === null || isDead(turn)) return { kind: "empty", status: 204 };
      const tokenId = view.token.id;
      streams.reserve(tokenId);
      response.writeHead(200, eventHeaders(id));
      response.flushHeaders();
      const stream = new TextStream(response, turn.turnId);
      streams.add(stream);
      live.add(tokenId, response, () => stream.revoke());
      const { signal: left } = stream;
      const holdBack = isSilentReply;
      const events = followTurn({ store, ref: at, state, turn, clock, isDead, holdBack, signal: left });
      void stream.run(events).then((end) => streams.remove(stream, tokenId, end));
      return null;
    },
  }),
];
