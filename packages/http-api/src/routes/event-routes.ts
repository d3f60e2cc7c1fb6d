import type { SessionState, SessionStore } from "@throughline/core";
import { refused, sessionNotFound } from "@throughline/core/internal";
import { z } from "zod";
import { keyOfSegment } from "../http/session-segment.ts";
import { route, type ApiRequest, type RouteDefinition } from "../http/route.ts";
import { EventStream, type Followed } from "../events/event-stream.ts";
import { eventHeaders, eventText } from "../events/event-text.ts";
import { sessionQuery } from "../schemas/session.ts";
import { queryFlag, queryInteger } from "../schemas/values.ts";

const description = `The data of an event is JSON.

| event | data |
| --- | --- |
| \`hello\` | first, for each session: \`{key, sessionId, lastSeq, headId, revision, turn, pendingApprovals}\` |
| \`record\` | a record; its id is \`SESSIONID/SEQ\` |
| \`state\` | as \`hello\`, when something changed that no record says |
| \`partial\` | with \`partial=true\`, at most each 500 ms while a turn is open: \`{sessionId, turnId, step, attempt, text, updatedMs}\`, all of its text so far. It has no id |
| \`ping\` | every 15 s |
| \`lagged\` | the stream was not read: it ends; resume from the last id |
| \`gone\` | the key has another session, or none: \`{code, sessionId}\`; the stream ends |
| \`bye\` | the node is stopping: \`{retryMs}\`; the stream ends |

\`last-event-id\` resumes after that record and comes before \`after\`. Without either, events begin now. Closing the stream cancels nothing.`;

const headers = { "last-event-id": "the id of the last event that was read" } as const;
const answers = { 200: { description: "The events.", type: "text/event-stream" } } as const;
const mostSessions = 50;

export const eventRoutes: readonly RouteDefinition[] = [
  route({
    id: "followSession",
    method: "GET",
    path: "/sessions/{session}/events",
    summary: "Follows a session as a stream of server-sent events.",
    description,
    scope: "read",
    query: z.strictObject({
      ...sessionQuery,
      after: queryInteger(0).exactOptional().describe("events of records with a greater seq"),
      session: z.string().exactOptional().describe("the id of the session that is meant"),
      partial: queryFlag().exactOptional().describe("also the reply that is being written"),
      delta: queryFlag()
        .exactOptional()
        .describe("true is refused: no store keeps text of calls through a gateway while it arrives"),
    }),
    headers,
    answers,
    errors: ["SESSION_NOT_FOUND", "CAPABILITY_UNSUPPORTED", "RATE_LIMITED"],
    handle: async (request) => {
      const { context, query, view, header, signal } = request;
      const at = request.ref();
      const store = view.store(at.agentId);
      assertWatch(context.store);
      if (query.delta === true)
        throw refused("CAPABILITY_UNSUPPORTED", "Text of running calls comes from a gateway.", { needs: "gateway" });
      const state = await store.load(at, { signal });
      if (state === null) throw sessionNotFound(at);
      const last = positionsOf(header("last-event-id"))[0];
      const wanted = last?.sessionId ?? query.session ?? state.sessionId;
      const from = { state, store, sessionId: wanted, after: last?.seq ?? query.after ?? null };
      if (query.partial === true && store.partials === undefined)
        throw refused("CAPABILITY_UNSUPPORTED", `The store ${store.capabilities.name} keeps no partial replies.`, {
          needs: "partials",
        });
      stream(request, [from], false, query.partial === true);
      return null;
    },
  }),
  route({
    id: "followSessions",
    method: "GET",
    path: "/events",
    summary: "Follows up to 50 sessions in one stream.",
    description:
      "The events are those of one session, without `partial`. The data of a `record` has a `sessionId`; the id of an event states how far the stream is in every session.",
    scope: "read",
    query: z.strictObject({
      agent: sessionQuery.agent,
      session: z.string().describe("keys with commas between them, each percent-encoded, or `~` and base64url"),
    }),
    headers,
    answers,
    errors: ["SESSION_NOT_FOUND", "CAPABILITY_UNSUPPORTED", "RATE_LIMITED"],
    handle: async (request) => {
      const { context, query, view, header, signal } = request;
      assertWatch(context.store);
      const segments = query.session.split(",");
      if (segments.length > mostSessions)
        throw refused("INPUT_INVALID", `A stream follows at most ${mostSessions} sessions.`, { most: mostSessions });
      const positions = positionsOf(header("last-event-id"));
      const from: StreamStart[] = [];
      for (const segment of segments) {
        const at = request.refOf(keyOfSegment(segment));
        const store = view.store(at.agentId);
        const state = await store.load(at, { signal });
        if (state === null) throw sessionNotFound(at);
        const after = positions.find(({ sessionId }) => sessionId === state.sessionId)?.seq ?? null;
        from.push({ state, store, sessionId: state.sessionId, after });
      }
      stream(request, from, true);
      return null;
    },
  }),
];

interface StreamStart {
  readonly state: SessionState;
  readonly store: SessionStore;
  /** Names the session that the client expects, because the key may belong to another session now. */
  readonly sessionId: string;
  /** Null starts with new events. */
  readonly after: number | null;
}

function assertWatch({ capabilities }: SessionStore): void {
  if (!capabilities.watch)
    throw refused("CAPABILITY_UNSUPPORTED", `The store ${capabilities.name} cannot be followed.`, { needs: "watch" });
}

function positionsOf(text: string | undefined): readonly { readonly sessionId: string; readonly seq: number }[] {
  if (text === undefined || text === "") return [];
  return text.split(",").map((part) => {
    const [, sessionId, seq] = /^([A-Za-z0-9][A-Za-z0-9._-]{0,127})\/(\d{1,15})$/.exec(part) ?? [];
    if (sessionId === undefined)
      throw refused("INPUT_INVALID", "last-event-id is the id of an event: SESSIONID/SEQ.", {
        header: "last-event-id",
      });
    return { sessionId, seq: Number(seq) };
  });
}

function stream(
  request: ApiRequest,
  starts: readonly StreamStart[],
  isComposite: boolean,
  withPartial: boolean = false,
): void {
  const { context, view, response, id } = request;
  context.streams.reserve(view.token.id);
  response.writeHead(200, eventHeaders(id));
  response.flushHeaders();
  const lost = starts.find(({ state, sessionId, after }) => {
    return state.sessionId !== sessionId || (after !== null && after > state.head.lastSeq);
  });
  if (lost !== undefined) {
    const isOther = lost.state.sessionId !== lost.sessionId;
    const end = isOther
      ? { code: "SESSION_REPLACED", sessionId: lost.state.sessionId }
      : { code: "CURSOR_INVALID", sessionId: lost.sessionId };
    response.end(eventText("gone", JSON.stringify(end)));
    return context.streams.release(view.token.id, "gone");
  }
  follow(request, starts, isComposite, withPartial);
}

function follow(
  { context, view, response }: ApiRequest,
  starts: readonly StreamStart[],
  isComposite: boolean,
  withPartial: boolean,
): void {
  const { hub, streams, live } = context;
  const followed: Followed[] = [];
  const events = new EventStream(response, followed, isComposite);
  for (const { state, store, after } of starts) {
    const feed = hub.join(state, events);
    followed.push({ feed, store, position: after ?? state.head.lastSeq, stateVersion: feed.stateVersion });
  }
  streams.add(events);
  live.add(view.token.id, response, () => events.gone({ code: "UNAUTHENTICATED", sessionId: null }));
  const ends = withPartial
    ? followed.flatMap(({ feed, store: { partials } }) => {
        return partials === undefined ? [] : [hub.partialsOf(feed, partials).join((event) => events.partial(event))];
      })
    : [];
  void events.done.then((end) => {
    for (const leave of ends) leave();
    for (const { feed } of followed) hub.leave(feed, events);
    streams.remove(events, view.token.id, end);
  });
  events.begin();
}
