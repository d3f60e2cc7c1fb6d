import type { SessionState, SessionStore, StoredRecord } from "@throughline/core";
import { loadExisting, runInSlices } from "@throughline/core/internal";
import { pricesAsOf } from "@throughline/tokens/internal";
import type { FileCall, FileChanges } from "@throughline/transcript-view/internal";
import { z } from "zod";
import { largeJson, list, type ListAnswer } from "../http/answer.ts";
import { type ApiRequest, route, type RouteDefinition } from "../http/route.ts";
import { changedFileSchema, digestSchema, fileChangeSchema, sessionUsageSchema } from "../schemas/digest.ts";
import { sessionQuery } from "../schemas/session.ts";
import { listOf, queryInteger, seq } from "../schemas/values.ts";
import type { DigestedSession } from "../session-digests.ts";
import { forkOrigin } from "./session-json.ts";

const pageBytes = 2 * 1024 * 1024;
const mostChanges = 200;

export const digestRoutes: readonly RouteDefinition[] = [
  route({
    id: "getDigest",
    method: "GET",
    path: "/sessions/{session}/digest",
    summary: "A whole session without its content: its prompts, errors, compactions, branches, and a time axis.",
    description:
      "The first answer reads every record; later ones read new records only, until the server forgets the session.",
    scope: "read",
    query: z.strictObject(sessionQuery),
    answers: { 200: { description: "The digest.", schema: digestSchema } },
    errors: ["SESSION_NOT_FOUND"],
    handle: async (request) => {
      const { state, digested } = await digestOf(request);
      const { headId } = state.head;
      const view = await runInSlices(digested.digest.view(headId));
      return largeJson(200, { kind: "digest", ...placeOf(state, digested), headId, ...view });
    },
  }),
  route({
    id: "getSessionUsage",
    method: "GET",
    path: "/sessions/{session}/usage",
    summary: "Tokens, cost and time of a session, from prompt to prompt.",
    description:
      "Every branch counts. Each call counts once. `total` leaves out what a fork shares with its origin; calls that other sessions have copies of count here all the same.",
    scope: "read",
    query: z.strictObject(sessionQuery),
    answers: { 200: { description: "The sums.", schema: sessionUsageSchema } },
    errors: ["SESSION_NOT_FOUND"],
    handle: async (request) => {
      const { state, digested } = await digestOf(request);
      const sharedSeq = forkOrigin(state.entry)?.atSeq ?? 0;
      const usage = await runInSlices(digested.usage.usage({}, sharedSeq));
      return largeJson(200, { kind: "sessionUsage", ...placeOf(state, digested), ...usage, pricesAsOf });
    },
  }),
  route({
    id: "listChangedFiles",
    method: "GET",
    path: "/sessions/{session}/changed-files",
    summary: "The files that a session changed, or each change of one file.",
    description:
      "Changes are what the arguments of file tools say. Changes by shell commands are not listed, except `apply_patch`. The server looks at no file.",
    scope: "read",
    query: z.strictObject({
      ...sessionQuery,
      path: z.string().min(1).max(4096).exactOptional().describe("a path of the list: the changes of this file"),
      after: queryInteger(0).exactOptional().describe("with `path`: only changes in records with a greater seq"),
    }),
    answers: {
      200: {
        description: "The files by their first change, or the changes in order.",
        schema: listOf(z.union([changedFileSchema, fileChangeSchema]), {
          nextSeq: seq
            .nullable()
            .describe("with `path`: the `after` of the next page, which ends at 2 MiB or 200 calls; null: none"),
        }),
      },
    },
    errors: ["SESSION_NOT_FOUND"],
    handle: async (request) => {
      const { path, after = 0 } = request.query;
      const { store, state, digested } = await digestOf(request);
      if (path !== undefined)
        return changesOf(store, state, { files: digested.files, path, after, signal: request.signal });
      const files = await runInSlices(digested.files.files());
      return list(
        files.map((file) => JSON.stringify({ kind: "changedFile", ...file })),
        null,
        { nextSeq: null },
      );
    },
  }),
];

interface Digested {
  readonly store: SessionStore;
  readonly state: SessionState;
  readonly digested: DigestedSession;
}

async function digestOf({ context, ref, view, signal }: ApiRequest): Promise<Digested> {
  const at = ref();
  const store = view.store(at.agentId);
  const state = await loadExisting(store, at);
  return { store, state, digested: await (await context.digests()).of(store, state, signal) };
}

function placeOf(
  { ref, sessionId }: SessionState,
  { digest }: DigestedSession,
): { readonly key: string; readonly sessionId: string; readonly lastSeq: number } {
  return { key: ref.key, sessionId, lastSeq: digest.lastSeq };
}

interface ChangeRequest {
  readonly files: FileChanges;
  readonly path: string;
  readonly after: number;
  readonly signal: AbortSignal;
}

/** Follows the content of the file from its first change on, so that a write is shown beside what it replaces. */
async function changesOf(
  store: SessionStore,
  { ref }: SessionState,
  { files, path, after, signal }: ChangeRequest,
): Promise<ListAnswer> {
  const { KnownContent, unifiedPatchOf } = await import("@throughline/transcript-view/internal");
  const content = new KnownContent();
  const items: string[] = [];
  let [bytes, calls, shownSeq] = [0, 0, 0];
  let nextSeq: number | null = null;
  for (const call of files.callsOf(path)) {
    const isShown = call.seq > after;
    // A page ends between records, because a page begins behind one.
    if (isShown && call.seq !== shownSeq && (bytes >= pageBytes || calls >= mostChanges)) {
      nextSeq = call.seq - 1;
      break;
    }
    const stored = await recordAt(store, ref, call.seq, signal);
    const edits = stored === null ? [] : files.editsIn(stored, call, path);
    const patch = isShown && edits.length === 1 ? unifiedPatchOf(await detailsOf(store, ref, call, signal)) : null;
    for (const edit of edits) {
      const before = edit.what === "write" ? content.text : edit.before;
      if (call.isError !== true) content.take(edit);
      if (!isShown || stored === null) continue;
      const { what, tool, callId, isEverywhere, after: written } = edit;
      const place = { kind: "fileChange", path, seq: call.seq, recordId: stored.id, callId, tool, what };
      const texts = { before, after: written, patch: patch ?? edit.patch };
      const item = JSON.stringify({ ...place, isError: call.isError, isEverywhere, ...texts });
      items.push(item);
      bytes += item.length;
    }
    if (!isShown) continue;
    calls += 1;
    shownSeq = call.seq;
  }
  return list(items, null, { nextSeq });
}

async function recordAt(
  store: SessionStore,
  ref: SessionState["ref"],
  at: number,
  signal: AbortSignal,
): Promise<StoredRecord | null> {
  for await (const { records } of store.read(ref, { afterSeq: at - 1, limit: 1, signal }))
    for (const record of records) return record.seq === at ? record : null;
  return null;
}

async function detailsOf(
  store: SessionStore,
  ref: SessionState["ref"],
  { resultSeq }: FileCall,
  signal: AbortSignal,
): Promise<unknown> {
  const result = resultSeq === null ? null : await recordAt(store, ref, resultSeq, signal);
  return (result?.record["message"] as { readonly details?: unknown } | null | undefined)?.details;
}
