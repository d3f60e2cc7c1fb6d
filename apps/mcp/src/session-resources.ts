import type { McpServer, ServerContext } from "@modelcontextprotocol/server";
import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError } from "@modelcontextprotocol/server";
import { hasErrorCode, type SessionRef } from "@throughline/core";
import { sessionRow } from "@throughline/core/internal";
import { listPage } from "./list-tool.ts";
import { inCall, type CallHost, type MemoryCall } from "./memory-call.ts";
import { readSession } from "./read-tool.ts";
import { plainName } from "./result-text.ts";
import { agentBeside } from "./session-place.ts";
import { failureText } from "./tool-failure.ts";

const scheme = "throughline://session/";
/** An encoded character has at most nine characters. */
const mostAddressLength = 9 * 600;
const mimeType = "text/plain";
const pageLength = 50;
/** Some clients fetch every page and show all of them to a person, so the list ends here. */
const mostPages = 20;

export function offerSessions(server: McpServer, host: CallHost): void {
  const { server: protocol } = server;
  protocol.registerCapabilities({ resources: {} });
  protocol.setRequestHandler("resources/list", async ({ params }, context) =>
    answered(host, context, async (call) => {
      const { page, cursor } = pageOf(params?.cursor);
      const { sessions, nextCursor } = await listPage(call, { prefix: "", cursor, limit: pageLength });
      const resources = sessions.map((state) => {
        const { name, messageCount } = sessionRow(state);
        return {
          uri: addressOf(state.ref, host.scope.agentId),
          name: plainName(name, 200),
          description: `${messageCount} messages of a past session`,
          mimeType,
        };
      });
      const isEnd = nextCursor === null || page + 1 >= mostPages;
      return { resources, ...(isEnd ? {} : { nextCursor: `${page + 1}.${nextCursor}` }) };
    }),
  );
  protocol.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: [
      {
        uriTemplate: `${scheme}{key}`,
        name: "session",
        description: "The newest messages of a past session, by its key",
        mimeType,
      },
    ],
  }));
  protocol.setRequestHandler("resources/read", async ({ params: { uri } }, context) => {
    const named = sessionOf(uri);
    if (named === null) throw new ResourceNotFoundError(plainName(uri, 600));
    return answered(host, context, async (call) => {
      try {
        const { text } = await readSession(call, named);
        return { contents: [{ uri, mimeType, text }] };
      } catch (error) {
        if (hasErrorCode(error, "SESSION_NOT_FOUND")) throw new ResourceNotFoundError(plainName(uri, 600));
        throw error;
      }
    });
  });
}

async function answered<Result>(
  host: CallHost,
  { mcpReq }: ServerContext,
  work: (call: MemoryCall) => Promise<Result>,
): Promise<Result> {
  try {
    return await inCall(host, mcpReq.signal, work);
  } catch (error) {
    if (error instanceof ProtocolError || mcpReq.signal.aborted) throw error;
    const { text, isReported } = failureText(error);
    if (isReported) host.options.onError(error);
    throw new ProtocolError(isReported ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams, text);
  }
}

function pageOf(cursor: string | undefined): { readonly page: number; readonly cursor: string | undefined } {
  if (cursor === undefined) return { page: 0, cursor: undefined };
  const [, page, rest] = /^(\d{1,2})\.([\w-]{1,4000})$/.exec(cursor.slice(0, 4100)) ?? [];
  if (page === undefined || Number(page) >= mostPages)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, "The cursor cannot be read.");
  return { page: Number(page), cursor: rest };
}

function addressOf(ref: SessionRef, ownAgent: string): string {
  const agent = agentBeside(ref, ownAgent);
  const address = scheme + encodeURIComponent(ref.key);
  return agent === null ? address : `${address}?agent=${encodeURIComponent(agent)}`;
}

/** Returns null for any other address. */
function sessionOf(uri: string): { readonly key: string; readonly agent?: string } | null {
  if (!uri.startsWith(scheme) || uri.length > mostAddressLength) return null;
  const [address = "", agent, ...rest] = uri.slice(scheme.length).split("?agent=");
  if (rest.length > 0) return null;
  try {
    const key = decodeURIComponent(address);
    if (key === "" || key.length > 512) return null;
    return agent === undefined ? { key } : { key, agent: decodeURIComponent(agent) };
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}
