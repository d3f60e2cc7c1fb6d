import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { isFields } from "../../packages/core/src/json-object.ts";

/** A part of an answer of Gemini's API. */
export type GeminiPart = Readonly<Record<string, unknown>>;

/** A server that answers as Gemini's API does. The provider simulator has no such API. */
export interface GeminiServer {
  readonly url: string;
  /** The bodies of the requests that ask a model for an answer. */
  readonly bodies: readonly unknown[];
  close(): Promise<void>;
}

/** @param answer the parts of the answer to a request */
export async function startGeminiServer(answer: (body: unknown) => readonly GeminiPart[]): Promise<GeminiServer> {
  const bodies: unknown[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const pieces: Buffer[] = [];
      for await (const piece of request) pieces.push(piece as Buffer);
      const text = Buffer.concat(pieces).toString();
      const body: unknown = text === "" ? {} : JSON.parse(text);
      const url = request.url ?? "";
      if (url.includes(":countTokens")) {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ totalTokens: 10 }));
        return;
      }
      bodies.push(body);
      const candidate = { index: 0, finishReason: "STOP", content: { role: "model", parts: answer(body) } };
      const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 };
      const reply = JSON.stringify({ candidates: [candidate], usageMetadata });
      const isStream = url.includes(":streamGenerateContent");
      response.setHeader("content-type", isStream ? "text/event-stream" : "application/json");
      response.end(isStream ? `data: ${reply}\n\n` : reply);
    })();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    close: () =>
      new Promise((resolve, reject) => {
        server.closeAllConnections();
        server.close((error) => (error === undefined ? resolve() : reject(error)));
      }),
  };
}

/** The texts of the last content of a request, and whether it answers a call. */
export function lastContent(body: unknown): { readonly text: string; readonly isResult: boolean } {
  const contents = isFields(body) && Array.isArray(body["contents"]) ? (body["contents"] as readonly unknown[]) : [];
  const text = JSON.stringify(contents.at(-1) ?? null);
  return { text, isResult: text.includes("functionResponse") };
}
