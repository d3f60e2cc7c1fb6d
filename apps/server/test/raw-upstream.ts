import { createServer, type Socket } from "node:net";
import type { GatewayOptions, ServerOptions, UpstreamOptions } from "@throughline/server";
import { serve, type Serving } from "./serving.ts";

/** What an upstream was sent. */
interface HeardRequest {
  readonly head: string;
  readonly body: Buffer;
  readonly socket: Socket;
}

export interface RawServing {
  readonly serving: Serving;
  /** A token that may ask both upstreams, read and write. */
  readonly token: string;
  readonly heard: HeardRequest[];
  /** What is done with each request from now on. */
  answerWith(answer: (request: HeardRequest) => void): void;
  /** Calls of all sessions that the token sees, by their outcomes. */
  outcomes(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export const reply: Readonly<Record<string, unknown>> = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-opus-5",
  content: [{ type: "text", text: "Well." }],
  stop_reason: "end_turn",
  usage: { input_tokens: 1, output_tokens: 1 },
};

/** The bytes of an answer with the length of its body. */
export function answerBytes(body: unknown, head = "HTTP/1.1 200 OK"): Buffer {
  const text = JSON.stringify(body);
  const lines = [head, "content-type: application/json", `content-length: ${Buffer.byteLength(text)}`, "", text];
  return Buffer.from(lines.join("\r\n"), "latin1");
}

/** A gateway with upstreams `own` (a key of ours) and `caller`, behind which stands a socket that does what it is told. */
export async function serveRaw(
  ofUpstreams: Partial<UpstreamOptions> = {},
  { gateway, ...more }: Partial<Omit<ServerOptions, "gateway">> & { readonly gateway?: Partial<GatewayOptions> } = {},
): Promise<RawServing> {
  const heard: HeardRequest[] = [];
  const sockets = new Set<Socket>();
  let answer = ({ socket }: HeardRequest): void => void socket.write(answerBytes(reply));
  const upstream = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    let bytes = Buffer.alloc(0);
    socket.on("data", (more) => {
      bytes = Buffer.concat([bytes, more]);
      const end = bytes.indexOf("\r\n\r\n");
      if (end === -1) return;
      const head = bytes.toString("latin1", 0, end);
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      if (bytes.length < end + 4 + length) return;
      const request = { head, body: Buffer.from(bytes.subarray(end + 4, end + 4 + length)), socket };
      bytes = bytes.subarray(end + 4 + length);
      heard.push(request);
      answer(request);
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const address = upstream.address();
  const baseUrl = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  const common = { api: "anthropic", baseUrl, ...ofUpstreams } as const;
  const upstreams = {
    own: { ...common, credentials: "server", apiKey: "key-of-the-server" },
    caller: { ...common, credentials: "caller" },
  } as const;
  const serving = await serve({ gateway: { upstreams, ...gateway }, ...more });
  const scopes = ["read", "write", "delete", "gateway:own", "gateway:caller"] as const;
  const token = await serving.tokenOf({ namespace: "", scopes });
  return {
    serving,
    token,
    heard,
    answerWith: (other) => (answer = other),
    outcomes: async () => {
      const { body } = await serving.ask("GET", "/sessions?limit=1000", { token });
      const keys = (body["items"] as readonly { readonly key: string }[]).map(({ key }) => key);
      const calls = await Promise.all(
        keys.map(async (key) => (await serving.ask("GET", `/sessions/${key}/calls`, { token })).body["items"]),
      );
      return (calls.flat() as readonly { readonly outcome: string }[]).map(({ outcome }) => outcome);
    },
    close: async () => {
      await serving.close();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => upstream.close(resolve));
    },
  };
}
